package dev.tamis;

/** An ARP packet for IPv4 over Ethernet (RFC 826), to be read. */
public final class Arp extends View {
    /** Its length in bytes. */
    static final int LENGTH = 28;

    /** The operation of a request. */
    public static final int REQUEST = 1;

    /** The operation of a reply. */
    public static final int REPLY = 2;

    Arp(Packet packet) {
        super(packet);
    }

    /**
     * What it asks for or answers.
     *
     * @return 16 bits; {@link #REQUEST}, {@link #REPLY}
     */
    public int operation() {
        return Net.u16(at(6));
    }

    /**
     * The sender's Ethernet address.
     *
     * @return 48 bits
     */
    public long senderHardware() {
        return Net.u48(at(8));
    }

    /**
     * The sender's IPv4 address.
     *
     * @return 32 bits
     */
    public long sender() {
        return Net.u32(at(14));
    }

    /**
     * The Ethernet address that was asked for, 0 in a request.
     *
     * @return 48 bits
     */
    public long targetHardware() {
        return Net.u48(at(18));
    }

    /**
     * The IPv4 address that is asked for.
     *
     * @return 32 bits
     */
    public long target() {
        return Net.u32(at(24));
    }
}
