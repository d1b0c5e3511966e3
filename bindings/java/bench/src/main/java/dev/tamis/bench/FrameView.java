package dev.tamis.bench;

/**
 * A frame and its descriptor, whatever reads memory: unsigned values in network order, every access and every value checked.
 *
 * <p>Contract: the layout is that of a run's descriptors, version 1. A fork of the benchmark loads one subclass, so nothing
 * here is called virtually. With {@code -Dbench.unchecked=true} nothing is checked but what a subclass's memory checks.
 */
abstract class FrameView {
    /** Bytes of a descriptor. */
    static final int DESCRIPTOR = 48;

    static final int ADDRESS = 0;
    static final int LENGTH = 16;
    static final int NETWORK = 28;
    static final int TRANSPORT = 30;
    static final int ETHER_TYPE = 32;
    static final int PROTOCOL = 34;
    static final int VERDICT = 39;

    private static final boolean CHECKED = !Boolean.getBoolean("bench.unchecked");

    /** Bytes of the frame. */
    protected int length;

    /** Shows the frame of a descriptor of the burst. */
    abstract void point(int index);

    /** A field of the descriptor. */
    abstract byte descriptorByte(int field);

    /** A field of the descriptor. */
    abstract short descriptorShort(int field);

    abstract void putVerdict(byte verdict);

    // The frame's bytes, in network order.

    abstract byte getByte(int at);

    abstract short getShort(int at);

    abstract int getInt(int at);

    abstract void putByte(int at, byte value);

    abstract void putShort(int at, short value);

    abstract void putInt(int at, int value);

    final int length() {
        return length;
    }

    /** Where the IP header begins, 0xFFFF if there is none. */
    final int network() {
        return descriptorShort(NETWORK) & 0xFFFF;
    }

    /** Where the header after it begins, 0xFFFF if there is none. */
    final int transport() {
        return descriptorShort(TRANSPORT) & 0xFFFF;
    }

    final int etherType() {
        return descriptorShort(ETHER_TYPE) & 0xFFFF;
    }

    final int protocol() {
        return descriptorByte(PROTOCOL) & 0xFF;
    }

    final int u8(int at) {
        return getByte(in(at, 1)) & 0xFF;
    }

    final int u16(int at) {
        return getShort(in(at, 2)) & 0xFFFF;
    }

    final long u32(int at) {
        return getInt(in(at, 4)) & 0xFFFF_FFFFL;
    }

    final void u16(int at, int value) {
        if (CHECKED && value >>> 16 != 0) {
            throw outOfRange(value);
        }
        putShort(in(at, 2), (short) value);
    }

    final void u32(int at, long value) {
        if (CHECKED && value >>> 32 != 0) {
            throw outOfRange(value);
        }
        putInt(in(at, 4), (int) value);
    }

    private int in(int at, int size) {
        if (CHECKED && (at < 0 || at > length - size)) {
            throw new IndexOutOfBoundsException(size + " bytes at " + at + " of " + length);
        }
        return at;
    }

    private static RuntimeException outOfRange(long value) {
        return new IllegalArgumentException(value + " does not fit");
    }
}
