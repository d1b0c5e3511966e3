package dev.tamis;

/**
 * The UDP header of a packet (RFC 768). Setters keep its checksum (RFC 1624); 0, which means none,
 * stays.
 */
public final class Udp extends View {
    /** Its length in bytes. */
    static final int LENGTH = 8;

    /** Where its checksum is. */
    static final int CHECKSUM = 6;

    Udp(Packet packet) {
        super(packet);
    }

    /**
     * The source port.
     *
     * @return 16 bits
     */
    public int sourcePort() {
        return Net.u16(at(0));
    }

    /**
     * Sets the source port.
     *
     * @param port 16 bits
     * @return this view
     */
    public Udp sourcePort(int port) {
        return word("UDP sourcePort", 0, port);
    }

    /**
     * The destination port.
     *
     * @return 16 bits
     */
    public int destinationPort() {
        return Net.u16(at(2));
    }

    /**
     * Sets the destination port.
     *
     * @param port 16 bits
     * @return this view
     */
    public Udp destinationPort(int port) {
        return word("UDP destinationPort", 2, port);
    }

    /**
     * The length of header and payload, as the header says.
     *
     * @return bytes
     */
    public int length() {
        return Net.u16(at(4));
    }

    /**
     * Sets the length of header and payload. The checksum covers it twice, and both are kept.
     *
     * @param length bytes
     * @return this view
     */
    public Udp length(int length) {
        require("UDP length", length, 0xFFFF);
        int before = length();
        word("UDP length", 4, length);
        Net.put16(at(CHECKSUM), updated(checksum(), before, length));
        return this;
    }

    /**
     * The checksum.
     *
     * @return 16 bits, 0 for none
     */
    public int checksum() {
        return Net.u16(at(CHECKSUM));
    }

    /** A checksum that was 0 stays, and one that becomes 0 is written as the other zero. */
    static int updated(int checksum, int before, int after) {
        return checksum == 0 ? 0 : shown(Checksum.update(checksum, before, after));
    }

    /** A checksum as UDP writes it: 0 means none. */
    static int shown(int checksum) {
        return checksum == 0 ? 0xFFFF : checksum;
    }

    private Udp word(String field, int index, int after) {
        require(field, after, 0xFFFF);
        long at = at(0);
        int before = Net.raw16(at + index);
        int raw = Net.swap16(after);
        Net.putRaw16(at + index, raw);
        Net.putRaw16(at + CHECKSUM, updated(Net.raw16(at + CHECKSUM), before, raw));
        return this;
    }
}
