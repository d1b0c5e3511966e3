package dev.tamis;

/**
 * The fixed IPv6 header of a packet (RFC 8200). {@link Packet#protocol} and {@link
 * Packet#transportOffset} say what comes after its extension headers.
 *
 * <p>An address is two longs of 64 bits. Setters of addresses keep the checksum of TCP, UDP, ICMPv6
 * or another header that covers them, as long as no routing header names another destination.
 */
public final class Ipv6 extends View {
    /** Its length in bytes. */
    static final int LENGTH = 40;

    Ipv6(Packet packet) {
        super(packet);
    }

    /**
     * The traffic class: DSCP and ECN.
     *
     * @return 8 bits
     */
    public int trafficClass() {
        return Net.i32(at(0)) >>> 20 & 0xFF;
    }

    /**
     * Sets the traffic class.
     *
     * @param trafficClass 8 bits
     * @return this view
     */
    public Ipv6 trafficClass(int trafficClass) {
        require("IPv6 trafficClass", trafficClass, 0xFF);
        return first(0x0FF0_0000, trafficClass << 20);
    }

    /**
     * The flow label.
     *
     * @return 20 bits
     */
    public int flowLabel() {
        return Net.i32(at(0)) & 0xF_FFFF;
    }

    /**
     * Sets the flow label.
     *
     * @param label 20 bits
     * @return this view
     */
    public Ipv6 flowLabel(int label) {
        require("IPv6 flowLabel", label, 0xF_FFFF);
        return first(0xF_FFFF, label);
    }

    /**
     * The length of what comes after this header.
     *
     * @return bytes
     */
    public int payloadLength() {
        return Net.u16(at(4));
    }

    /**
     * Sets the length of what comes after this header. Checksums cover it: {@link
     * Packet#fixChecksums}.
     *
     * @param length bytes
     * @return this view
     */
    public Ipv6 payloadLength(int length) {
        require("IPv6 payloadLength", length, 0xFFFF);
        Net.put16(at(4), length);
        return this;
    }

    /**
     * What the next header is.
     *
     * @return 8 bits
     */
    public int nextHeader() {
        return Net.u8(at(6));
    }

    /**
     * How many more hops it may take.
     *
     * @return 8 bits
     */
    public int hopLimit() {
        return Net.u8(at(7));
    }

    /**
     * Sets how many more hops it may take.
     *
     * @param hopLimit 8 bits
     * @return this view
     */
    public Ipv6 hopLimit(int hopLimit) {
        require("IPv6 hopLimit", hopLimit, 0xFF);
        Net.put8(at(7), hopLimit);
        return this;
    }

    /**
     * The first half of the source.
     *
     * @return 64 bits
     */
    public long sourceHigh() {
        return Net.i64(at(8));
    }

    /**
     * The second half of the source.
     *
     * @return 64 bits
     */
    public long sourceLow() {
        return Net.i64(at(16));
    }

    /**
     * Sets the source.
     *
     * @param high its first 64 bits
     * @param low its last 64 bits
     * @return this view
     */
    public Ipv6 source(long high, long low) {
        return address(at(8), high, low);
    }

    /**
     * The first half of the destination.
     *
     * @return 64 bits
     */
    public long destinationHigh() {
        return Net.i64(at(24));
    }

    /**
     * The second half of the destination.
     *
     * @return 64 bits
     */
    public long destinationLow() {
        return Net.i64(at(32));
    }

    /**
     * Sets the destination.
     *
     * @param high its first 64 bits
     * @param low its last 64 bits
     * @return this view
     */
    public Ipv6 destination(long high, long low) {
        return address(at(24), high, low);
    }

    private Ipv6 first(int mask, int bits) {
        long at = at(0);
        Net.put32(at, Net.i32(at) & ~mask | bits);
        return this;
    }

    private Ipv6 address(long at, long high, long low) {
        long highBefore = Mem.getLong(at);
        long lowBefore = Mem.getLong(at + 8);
        Net.put64(at, high);
        Net.put64(at + 8, low);
        packet.addressChanged(highBefore, Mem.getLong(at));
        packet.addressChanged(lowBefore, Mem.getLong(at + 8));
        return this;
    }
}
