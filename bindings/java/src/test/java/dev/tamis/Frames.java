package dev.tamis;

import sun.misc.Unsafe;

import java.lang.reflect.Field;
import java.util.Arrays;

/**
 * Frames in native memory with their descriptors, as the native side would lay them out; made by
 * tests.
 *
 * <p>Each frame has a slot of its own with room before and after it, which is filled with a
 * pattern: {@link #guardsHold} says whether anybody has written there.
 */
final class Frames implements AutoCloseable {
    static final int ROOM = 128;
    static final int MOST = 2048;
    private static final int SLOT = MOST + 2 * ROOM;
    private static final byte GUARD = (byte) 0xA5;
    private static final byte[] GUARDS = new byte[SLOT];
    private static final Unsafe UNSAFE = unsafe();

    static {
        Arrays.fill(GUARDS, GUARD);
    }

    private final int count;
    private final long descriptors;
    private final long slots;

    /** The slot that is looked at. */
    private final byte[] slot = new byte[SLOT];

    Frames(int count) {
        this.count = count;
        this.descriptors = UNSAFE.allocateMemory((long) count * Descriptor.SIZE);
        this.slots = UNSAFE.allocateMemory((long) count * SLOT);
    }

    static Unsafe unsafe() {
        try {
            Field field = Unsafe.class.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            return (Unsafe) field.get(null);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    long descriptors() {
        return descriptors;
    }

    int count() {
        return count;
    }

    /** Puts a whole frame there, with the offsets that its bytes have. */
    void put(int at, byte[] frame) {
        put(at, frame, frame.length, Offsets.of(frame));
    }

    /** Puts the first bytes of a frame there, with any offsets. */
    void put(int at, byte[] frame, int length, Offsets offsets) {
        long slot = slots + (long) at * SLOT;
        UNSAFE.setMemory(slot, SLOT, GUARD);
        UNSAFE.copyMemory(frame, Unsafe.ARRAY_BYTE_BASE_OFFSET, null, slot + ROOM, length);
        long one = descriptors + (long) at * Descriptor.SIZE;
        UNSAFE.putLong(one + Descriptor.ADDRESS, slot + ROOM);
        UNSAFE.putLong(one + Descriptor.TIME, 1_700_000_000_000_000_000L + at);
        UNSAFE.putInt(one + Descriptor.LENGTH, length);
        UNSAFE.putInt(one + Descriptor.WIRE_LENGTH, frame.length);
        UNSAFE.putShort(one + Descriptor.HEADROOM, (short) ROOM);
        UNSAFE.putShort(one + Descriptor.TAILROOM, (short) (SLOT - ROOM - length));
        UNSAFE.putShort(one + Descriptor.NETWORK, (short) offsets.network());
        UNSAFE.putShort(one + Descriptor.TRANSPORT, (short) offsets.transport());
        UNSAFE.putShort(one + Descriptor.ETHER_TYPE, (short) offsets.etherType());
        UNSAFE.putByte(one + Descriptor.PROTOCOL, (byte) offsets.protocol());
        UNSAFE.putByte(one + Descriptor.FLAGS, (byte) offsets.flags());
        UNSAFE.putShort(one + Descriptor.WIRE, (short) 0);
        UNSAFE.putByte(one + Descriptor.FROM, (byte) (at & 1));
        UNSAFE.putByte(one + Descriptor.VERDICT, (byte) 0);
        UNSAFE.putLong(one + Descriptor.NUMBER, at);
    }

    int verdict(int at) {
        return UNSAFE.getByte(descriptors + (long) at * Descriptor.SIZE + Descriptor.VERDICT);
    }

    /** The frame as its descriptor says. */
    byte[] get(int at) {
        long one = descriptors + (long) at * Descriptor.SIZE;
        byte[] frame = new byte[UNSAFE.getInt(one + Descriptor.LENGTH)];
        long address = UNSAFE.getLong(one + Descriptor.ADDRESS);
        UNSAFE.copyMemory(null, address, frame, Unsafe.ARRAY_BYTE_BASE_OFFSET, frame.length);
        return frame;
    }

    /** Where the frame begins in its slot. */
    int begin(int at) {
        long address =
                UNSAFE.getLong(descriptors + (long) at * Descriptor.SIZE + Descriptor.ADDRESS);
        return Math.toIntExact(address - slots - (long) at * SLOT);
    }

    /** Where the frame ends in its slot. */
    int end(int at) {
        return begin(at)
                + UNSAFE.getInt(descriptors + (long) at * Descriptor.SIZE + Descriptor.LENGTH);
    }

    /** Whether the bytes of the slot before and after the frame are as they were. */
    boolean guardsHold(int at) {
        return guardsHold(at, begin(at), end(at));
    }

    /** Whether the bytes of the slot but these are as they were. */
    boolean guardsHold(int at, int begin, int end) {
        UNSAFE.copyMemory(
                null, slots + (long) at * SLOT, slot, Unsafe.ARRAY_BYTE_BASE_OFFSET, SLOT);
        return Arrays.mismatch(slot, 0, begin, GUARDS, 0, begin) < 0
                && Arrays.mismatch(slot, end, SLOT, GUARDS, end, SLOT) < 0;
    }

    /** A burst over the first frame, at hand, as a handler has it. */
    Packet packet() {
        return new Burst(descriptors, new Failures(0)).begin(count).packet(0);
    }

    @Override
    public void close() {
        UNSAFE.freeMemory(descriptors);
        UNSAFE.freeMemory(slots);
    }

    /** What the native side finds out about a frame. */
    record Offsets(int network, int transport, int etherType, int protocol, int flags) {
        /** Reads a frame slowly. It is whole, and its headers are what they say. */
        static Offsets of(byte[] frame) {
            int at = 12;
            int type = u16(frame, at);
            while (type == 0x8100 || type == 0x88A8) {
                at += 4;
                type = u16(frame, at);
            }
            int network = at + 2;
            if (type == 0x0800) {
                int fragment = u16(frame, network + 6) & 0x3FFF;
                boolean isLater = (fragment & 0x1FFF) != 0;
                int flags = fragment == 0 ? 0 : isLater ? Descriptor.FRAGMENT : 3;
                int transport = isLater ? Descriptor.NONE : network + (frame[network] & 0xF) * 4;
                return new Offsets(network, transport, type, frame[network + 9] & 0xFF, flags);
            }
            if (type == 0x86DD) {
                return new Offsets(network, network + 40, type, frame[network + 6] & 0xFF, 0);
            }
            return new Offsets(Descriptor.NONE, Descriptor.NONE, type, Descriptor.NO_PROTOCOL, 0);
        }

        private static int u16(byte[] frame, int at) {
            return (frame[at] & 0xFF) << 8 | frame[at + 1] & 0xFF;
        }
    }
}
