package dev.tamis;

/**
 * The IPv4 header of a packet, with its options (RFC 791).
 *
 * <p>Setters keep the header's checksum, and those of addresses also the checksum of TCP, UDP or
 * another header that covers them (RFC 1624). What a checksum has to cover anew is for {@link
 * Packet#fixChecksums}.
 */
public final class Ipv4 extends View {
    /** Its length in bytes without options. */
    static final int LENGTH = 20;

    private static final int CHECKSUM = 10;

    Ipv4(Packet packet) {
        super(packet);
    }

    /**
     * The length of the header with its options.
     *
     * @return bytes, 60 at most
     */
    public int headerLength() {
        return (Net.u8(at(0)) & 0xF) * 4;
    }

    /**
     * The type of service: DSCP and ECN.
     *
     * @return 8 bits
     */
    public int tos() {
        return Net.u8(at(1));
    }

    /**
     * Sets the type of service.
     *
     * @param tos 8 bits
     * @return this view
     */
    public Ipv4 tos(int tos) {
        require("IPv4 tos", tos, 0xFF);
        long at = at(0);
        return word(at, 0, Net.u8(at) << 8 | tos);
    }

    /**
     * The length of the packet as its header says.
     *
     * @return bytes, header included
     */
    public int totalLength() {
        return Net.u16(at(2));
    }

    /**
     * Sets the length of the packet. Checksums of TCP and UDP cover it: {@link
     * Packet#fixChecksums}.
     *
     * @param length bytes, header included
     * @return this view
     */
    public Ipv4 totalLength(int length) {
        require("IPv4 totalLength", length, 0xFFFF);
        return word(at(0), 2, length);
    }

    /**
     * The number that fragments of one packet share.
     *
     * @return 16 bits
     */
    public int identification() {
        return Net.u16(at(4));
    }

    /**
     * Sets the number that fragments of one packet share.
     *
     * @param identification 16 bits
     * @return this view
     */
    public Ipv4 identification(int identification) {
        require("IPv4 identification", identification, 0xFFFF);
        return word(at(0), 4, identification);
    }

    /**
     * Whether it must not be fragmented.
     *
     * @return the flag
     */
    public boolean isDontFragment() {
        return (Net.u8(at(6)) & 0x40) != 0;
    }

    /**
     * Sets whether it must not be fragmented.
     *
     * @param dont the flag
     * @return this view
     */
    public Ipv4 dontFragment(boolean dont) {
        long at = at(0);
        return word(at, 6, Net.u16(at + 6) & ~0x4000 | (dont ? 0x4000 : 0));
    }

    /**
     * Whether fragments come after this one.
     *
     * @return the flag
     */
    public boolean hasMoreFragments() {
        return (Net.u8(at(6)) & 0x20) != 0;
    }

    /**
     * Where the payload belongs in the whole packet's.
     *
     * @return bytes
     */
    public int fragmentOffset() {
        return (Net.u16(at(6)) & 0x1FFF) * 8;
    }

    /**
     * How many more hops it may take.
     *
     * @return 8 bits
     */
    public int ttl() {
        return Net.u8(at(8));
    }

    /**
     * Sets how many more hops it may take.
     *
     * @param ttl 8 bits
     * @return this view
     */
    public Ipv4 ttl(int ttl) {
        require("IPv4 ttl", ttl, 0xFF);
        long at = at(0);
        return word(at, 8, ttl << 8 | Net.u8(at + 9));
    }

    /**
     * The protocol of the payload.
     *
     * @return 8 bits
     */
    public int protocol() {
        return Net.u8(at(9));
    }

    /**
     * The header's checksum.
     *
     * @return 16 bits
     */
    public int checksum() {
        return Net.u16(at(CHECKSUM));
    }

    /**
     * The source.
     *
     * @return 32 bits; {@link Address#text(long)} writes it
     */
    public long source() {
        return Net.u32(at(12));
    }

    /**
     * Sets the source.
     *
     * @param address 32 bits
     * @return this view
     */
    public Ipv4 source(long address) {
        require("IPv4 source", address, 0xFFFF_FFFFL);
        return address(12, (int) address);
    }

    /**
     * The destination.
     *
     * @return 32 bits
     */
    public long destination() {
        return Net.u32(at(16));
    }

    /**
     * Sets the destination.
     *
     * @param address 32 bits
     * @return this view
     */
    public Ipv4 destination(long address) {
        require("IPv4 destination", address, 0xFFFF_FFFFL);
        return address(16, (int) address);
    }

    private Ipv4 word(long at, int index, int after) {
        Checksum.put16(at + index, after, at + CHECKSUM);
        return this;
    }

    private Ipv4 address(int index, int after) {
        long at = at(0);
        int before = Net.raw32(at + index);
        Checksum.put32(at + index, after, at + CHECKSUM);
        packet.addressChanged(before, Net.swap32(after));
        return this;
    }
}
