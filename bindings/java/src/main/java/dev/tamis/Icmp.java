package dev.tamis;

/**
 * The header of an ICMP or ICMPv6 message (RFC 792, RFC 4443). Setters keep its checksum (RFC
 * 1624).
 *
 * <p>{@link Packet#isIpv6} says which of both it is: their types have other numbers.
 */
public final class Icmp extends View {
    /** Its length in bytes. */
    static final int LENGTH = 8;

    /** Where its checksum is. */
    static final int CHECKSUM = 2;

    Icmp(Packet packet) {
        super(packet);
    }

    /**
     * The type of the message.
     *
     * @return 8 bits
     */
    public int type() {
        return Net.u8(at(0));
    }

    /**
     * Sets the type of the message.
     *
     * @param type 8 bits
     * @return this view
     */
    public Icmp type(int type) {
        require("ICMP type", type, 0xFF);
        return word("ICMP type", 0, type << 8 | code());
    }

    /**
     * The code, whose meaning depends on the type.
     *
     * @return 8 bits
     */
    public int code() {
        return Net.u8(at(1));
    }

    /**
     * Sets the code.
     *
     * @param code 8 bits
     * @return this view
     */
    public Icmp code(int code) {
        require("ICMP code", code, 0xFF);
        return word("ICMP code", 0, type() << 8 | code);
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
     * The identifier of an echo request or reply.
     *
     * @return 16 bits
     */
    public int identifier() {
        return Net.u16(at(4));
    }

    /**
     * Sets the identifier.
     *
     * @param identifier 16 bits
     * @return this view
     */
    public Icmp identifier(int identifier) {
        return word("ICMP identifier", 4, identifier);
    }

    /**
     * The sequence number of an echo request or reply, or the MTU of a message that says so.
     *
     * @return 16 bits
     */
    public int sequence() {
        return Net.u16(at(6));
    }

    /**
     * Sets the sequence number.
     *
     * @param sequence 16 bits
     * @return this view
     */
    public Icmp sequence(int sequence) {
        return word("ICMP sequence", 6, sequence);
    }

    private Icmp word(String field, int index, int after) {
        require(field, after, 0xFFFF);
        long at = at(0);
        Checksum.put16(at + index, after, at + CHECKSUM);
        return this;
    }
}
