package dev.tamis.bench;

/**
 * The struct of the study's job, whatever holds it: twelve unsigned fields of 1, 2, 4 and 8 bytes, and the job.
 *
 * <p>Contract: the Rust half is {@code fields.rs}. A field of 1 or 2 bytes is an int here, one of 4 or 8 a long; setters are
 * given no more bits than the field has. A fork of the benchmark loads one subclass, so nothing here is called virtually.
 */
abstract class Fields {
    /** Bytes of a packed struct. */
    static final int PACKED_SIZE = 56;

    // Where the fields of a packed struct begin.
    static final int PORT = 0;
    static final int VLAN = 1;
    static final int LENGTH = 3;
    static final int FLAGS = 7;
    static final int KIND = 15;
    static final int QUEUE = 16;
    static final int HASH = 18;
    static final int TIME = 22;
    static final int HEADROOM = 30;
    static final int ADDRESS = 32;
    static final int NEXT = 40;
    static final int USER = 48;

    abstract int getPort();

    abstract void setPort(int value);

    abstract int getVlan();

    abstract void setVlan(int value);

    abstract long getLength();

    abstract void setLength(long value);

    abstract long getFlags();

    abstract void setFlags(long value);

    abstract int getKind();

    abstract void setKind(int value);

    abstract int getQueue();

    abstract void setQueue(int value);

    abstract long getHash();

    abstract void setHash(long value);

    abstract long getTime();

    abstract void setTime(long value);

    abstract int getHeadroom();

    abstract void setHeadroom(int value);

    abstract long getAddress();

    abstract void setAddress(long value);

    abstract long getNext();

    abstract void setNext(long value);

    abstract long getUser();

    abstract void setUser(long value);

    /** Reads all fields, changes each by what all add up to, and writes all; what they added up to. */
    final long change() {
        int port = getPort();
        int vlan = getVlan();
        long length = getLength();
        long flags = getFlags();
        int kind = getKind();
        int queue = getQueue();
        long hash = getHash();
        long time = getTime();
        int headroom = getHeadroom();
        long address = getAddress();
        long next = getNext();
        long user = getUser();
        long sum = port + vlan + length + flags + kind + queue
                + hash + time + headroom + address + next + user;
        setPort((int) (port + sum + 1) & 0xFF);
        setVlan((int) (vlan + sum + 2) & 0xFFFF);
        setLength(length + sum + 3 & 0xFFFF_FFFFL);
        setFlags(flags + sum + 4);
        setKind((int) (kind + sum + 5) & 0xFF);
        setQueue((int) (queue + sum + 6) & 0xFFFF);
        setHash(hash + sum + 7 & 0xFFFF_FFFFL);
        setTime(time + sum + 8);
        setHeadroom((int) (headroom + sum + 9) & 0xFFFF);
        setAddress(address + sum + 10);
        setNext(next + sum + 11);
        setUser(user + sum + 12);
        return sum;
    }

    /** Copies all fields. */
    final void copyTo(Fields other) {
        other.setPort(getPort());
        other.setVlan(getVlan());
        other.setLength(getLength());
        other.setFlags(getFlags());
        other.setKind(getKind());
        other.setQueue(getQueue());
        other.setHash(getHash());
        other.setTime(getTime());
        other.setHeadroom(getHeadroom());
        other.setAddress(getAddress());
        other.setNext(getNext());
        other.setUser(getUser());
    }
}
