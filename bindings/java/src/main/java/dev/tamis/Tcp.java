package dev.tamis;

/** The TCP header of a packet (RFC 9293). Setters keep its checksum (RFC 1624). */
public final class Tcp extends View {
    /** Its length in bytes without options. */
    static final int LENGTH = 20;

    /** Where its checksum is. */
    static final int CHECKSUM = 16;

    private static final int END_OF_OPTIONS = 0;
    private static final int NO_OPERATION = 1;

    /** A flag: the sender has finished. */
    public static final int FIN = 0x01;

    /** A flag: the connection begins. */
    public static final int SYN = 0x02;

    /** A flag: the connection is aborted. */
    public static final int RST = 0x04;

    /** A flag: the receiver should hand over what it has. */
    public static final int PSH = 0x08;

    /** A flag: {@link #acknowledgment} counts. */
    public static final int ACK = 0x10;

    /** A flag: {@link #urgent} counts. */
    public static final int URG = 0x20;

    /** A flag: congestion was met. */
    public static final int ECE = 0x40;

    /** A flag: the congestion window is smaller now. */
    public static final int CWR = 0x80;

    Tcp(Packet packet) {
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
    public Tcp sourcePort(int port) {
        return word("TCP sourcePort", 0, port);
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
    public Tcp destinationPort(int port) {
        return word("TCP destinationPort", 2, port);
    }

    /**
     * The number of the first byte that it carries.
     *
     * @return 32 bits
     */
    public long sequence() {
        return Net.u32(at(4));
    }

    /**
     * Sets the number of the first byte that it carries.
     *
     * @param sequence 32 bits
     * @return this view
     */
    public Tcp sequence(long sequence) {
        return number("TCP sequence", 4, sequence);
    }

    /**
     * The number of the byte that is expected next.
     *
     * @return 32 bits
     */
    public long acknowledgment() {
        return Net.u32(at(8));
    }

    /**
     * Sets the number of the byte that is expected next.
     *
     * @param acknowledgment 32 bits
     * @return this view
     */
    public Tcp acknowledgment(long acknowledgment) {
        return number("TCP acknowledgment", 8, acknowledgment);
    }

    /**
     * The length of the header with its options, as it says.
     *
     * @return bytes, 60 at most
     */
    public int headerLength() {
        return (Net.u8(at(12)) >>> 4) * 4;
    }

    /**
     * The flags.
     *
     * @return 8 bits: {@link #SYN} and so on
     */
    public int flags() {
        return Net.u8(at(13));
    }

    /**
     * Sets the flags.
     *
     * @param flags 8 bits
     * @return this view
     */
    public Tcp flags(int flags) {
        require("TCP flags", flags, 0xFF);
        return word("TCP flags", 12, Net.u8(at(12)) << 8 | flags);
    }

    /**
     * Whether all of these flags are set.
     *
     * @param flags such as {@code SYN | ACK}
     * @return whether none of them is missing
     */
    public boolean has(int flags) {
        return (flags() & flags) == flags;
    }

    /**
     * The receiver's window, not scaled.
     *
     * @return 16 bits
     */
    public int window() {
        return Net.u16(at(14));
    }

    /**
     * Sets the receiver's window.
     *
     * @param window 16 bits
     * @return this view
     */
    public Tcp window(int window) {
        return word("TCP window", 14, window);
    }

    /**
     * The checksum.
     *
     * @return 16 bits
     */
    public int checksum() {
        return Net.u16(at(CHECKSUM));
    }

    /**
     * Where urgent bytes end.
     *
     * @return 16 bits
     */
    public int urgent() {
        return Net.u16(at(18));
    }

    /**
     * Sets where urgent bytes end.
     *
     * @param urgent 16 bits
     * @return this view
     */
    public Tcp urgent(int urgent) {
        return word("TCP urgent", 18, urgent);
    }

    /**
     * Finds an option.
     *
     * @param kind its number, such as 2 of the maximum segment size
     * @return where its first byte is in the packet, or -1 if the packet does not have all of it
     */
    public int option(int kind) {
        int end = Math.min(offset() + headerLength(), packet.length());
        int at = offset() + LENGTH;
        while (at < end) {
            int found = packet.u8(at);
            if (found == END_OF_OPTIONS) {
                return -1;
            }
            int length = found == NO_OPERATION ? 1 : at + 1 < end ? packet.u8(at + 1) : 0;
            if (length < (found == NO_OPERATION ? 1 : 2) || at + length > end) {
                return -1;
            }
            if (found == kind) {
                return at;
            }
            at += length;
        }
        return -1;
    }

    private Tcp word(String field, int index, int after) {
        require(field, after, 0xFFFF);
        long at = at(0);
        Checksum.put16(at + index, after, at + CHECKSUM);
        return this;
    }

    private Tcp number(String field, int index, long after) {
        require(field, after, 0xFFFF_FFFFL);
        long at = at(0);
        Checksum.put32(at + index, (int) after, at + CHECKSUM);
        return this;
    }
}
