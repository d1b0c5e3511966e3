package dev.tamis;

/** The Ethernet header of a frame: both addresses and the first EtherType (IEEE 802.3). */
public final class Ethernet extends View {
    /** Its length in bytes. */
    static final int LENGTH = 14;

    private static final long MAX_ADDRESS = 0xFFFF_FFFF_FFFFL;

    Ethernet(Packet packet) {
        super(packet);
    }

    /**
     * The destination.
     *
     * @return the 48 bits of the address
     */
    public long destination() {
        return Net.u48(at(0));
    }

    /**
     * Sets the destination.
     *
     * @param address 48 bits
     * @return this view
     */
    public Ethernet destination(long address) {
        require("Ethernet destination", address, MAX_ADDRESS);
        Net.put48(at(0), address);
        return this;
    }

    /**
     * The source.
     *
     * @return the 48 bits of the address
     */
    public long source() {
        return Net.u48(at(6));
    }

    /**
     * Sets the source.
     *
     * @param address 48 bits
     * @return this view
     */
    public Ethernet source(long address) {
        require("Ethernet source", address, MAX_ADDRESS);
        Net.put48(at(6), address);
        return this;
    }

    /**
     * The first EtherType, a VLAN tag's if there is one; {@link Packet#etherType} is the one after
     * all tags.
     *
     * @return 16 bits
     */
    public int type() {
        return Net.u16(at(12));
    }

    /**
     * Sets the first EtherType.
     *
     * @param type 16 bits
     * @return this view
     */
    public Ethernet type(int type) {
        require("Ethernet type", type, 0xFFFF);
        Net.put16(at(12), type);
        return this;
    }
}
