package dev.tamis.bench;

import com.sun.jna.Pointer;
import com.sun.jna.Structure;

/** The struct as JNA maps it: public fields, read and written all at once by reflection. */
@Structure.FieldOrder({"port", "vlan", "length", "flags", "kind", "queue",
    "hash", "time", "headroom", "address", "next", "user"})
public final class JnaStructure extends Structure {
    /** A field of 1 byte. */
    public byte port;

    /** A field of 2 bytes. */
    public short vlan;

    /** A field of 4 bytes. */
    public int length;

    /** A field of 8 bytes. */
    public long flags;

    /** A field of 1 byte. */
    public byte kind;

    /** A field of 2 bytes. */
    public short queue;

    /** A field of 4 bytes. */
    public int hash;

    /** A field of 8 bytes. */
    public long time;

    /** A field of 2 bytes. */
    public short headroom;

    /** A field of 8 bytes. */
    public long address;

    /** A field of 8 bytes. */
    public long next;

    /** A field of 8 bytes. */
    public long user;

    /**
     * The struct at a pointer.
     *
     * @param pointer the packed struct
     */
    public JnaStructure(Pointer pointer) {
        super(pointer, ALIGN_NONE);
    }

    /** Into the study's object. */
    void to(Packet packet) {
        packet.setPort(port & 0xFF);
        packet.setVlan(vlan & 0xFFFF);
        packet.setLength(length & 0xFFFF_FFFFL);
        packet.setFlags(flags);
        packet.setKind(kind & 0xFF);
        packet.setQueue(queue & 0xFFFF);
        packet.setHash(hash & 0xFFFF_FFFFL);
        packet.setTime(time);
        packet.setHeadroom(headroom & 0xFFFF);
        packet.setAddress(address);
        packet.setNext(next);
        packet.setUser(user);
    }

    /** Out of the study's object. */
    void from(Packet packet) {
        port = (byte) packet.getPort();
        vlan = (short) packet.getVlan();
        length = (int) packet.getLength();
        flags = packet.getFlags();
        kind = (byte) packet.getKind();
        queue = (short) packet.getQueue();
        hash = (int) packet.getHash();
        time = packet.getTime();
        headroom = (short) packet.getHeadroom();
        address = packet.getAddress();
        next = packet.getNext();
        user = packet.getUser();
    }
}
