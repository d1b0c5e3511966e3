package dev.tamis;

/**
 * A VLAN tag (IEEE 802.1Q): priority, drop eligibility, number, and the EtherType that comes after
 * it.
 */
public final class Vlan extends View {
    /** Its length in bytes, from the control word on. */
    static final int LENGTH = 4;

    Vlan(Packet packet) {
        super(packet);
    }

    /** Whether an EtherType is that of a tag. */
    static boolean isTag(int type) {
        return type == 0x8100 || type == 0x88A8;
    }

    /**
     * The number of the VLAN.
     *
     * @return 12 bits
     */
    public int id() {
        return Net.u16(at(0)) & 0xFFF;
    }

    /**
     * Sets the number of the VLAN.
     *
     * @param id 12 bits
     * @return this view
     */
    public Vlan id(int id) {
        require("VLAN id", id, 0xFFF);
        return control(0xFFF, id);
    }

    /**
     * The priority.
     *
     * @return 3 bits
     */
    public int priority() {
        return Net.u16(at(0)) >>> 13;
    }

    /**
     * Sets the priority.
     *
     * @param priority 3 bits
     * @return this view
     */
    public Vlan priority(int priority) {
        require("VLAN priority", priority, 7);
        return control(0xE000, priority << 13);
    }

    /**
     * Whether the frame may be dropped first.
     *
     * @return the drop eligible indicator
     */
    public boolean isDropEligible() {
        return (Net.u16(at(0)) & 0x1000) != 0;
    }

    /**
     * Sets whether the frame may be dropped first.
     *
     * @param eligible the drop eligible indicator
     * @return this view
     */
    public Vlan dropEligible(boolean eligible) {
        return control(0x1000, eligible ? 0x1000 : 0);
    }

    /**
     * The EtherType after the tag.
     *
     * @return 16 bits
     */
    public int type() {
        return Net.u16(at(2));
    }

    private Vlan control(int mask, int bits) {
        long at = at(0);
        Net.put16(at, Net.u16(at) & ~mask | bits);
        return this;
    }
}
