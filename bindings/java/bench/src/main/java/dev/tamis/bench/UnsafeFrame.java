package dev.tamis.bench;

import static dev.tamis.bench.Memory.UNSAFE;

import java.nio.ByteOrder;

/** A frame by {@code sun.misc.Unsafe}. */
final class UnsafeFrame extends FrameView {
    private static final boolean SWAPPED = ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN;

    private final long descriptors;
    private long descriptor;
    private long address;

    UnsafeFrame(long descriptors) {
        this.descriptors = descriptors;
    }

    @Override
    void point(int index) {
        descriptor = descriptors + (long) index * DESCRIPTOR;
        address = UNSAFE.getLong(descriptor + ADDRESS);
        length = UNSAFE.getInt(descriptor + LENGTH);
    }

    @Override
    byte descriptorByte(int field) {
        return UNSAFE.getByte(descriptor + field);
    }

    @Override
    short descriptorShort(int field) {
        return UNSAFE.getShort(descriptor + field);
    }

    @Override
    void putVerdict(byte verdict) {
        UNSAFE.putByte(descriptor + VERDICT, verdict);
    }

    @Override
    byte getByte(int at) {
        return UNSAFE.getByte(address + at);
    }

    @Override
    short getShort(int at) {
        return network(UNSAFE.getShort(address + at));
    }

    @Override
    int getInt(int at) {
        int value = UNSAFE.getInt(address + at);
        return SWAPPED ? Integer.reverseBytes(value) : value;
    }

    @Override
    void putByte(int at, byte value) {
        UNSAFE.putByte(address + at, value);
    }

    @Override
    void putShort(int at, short value) {
        UNSAFE.putShort(address + at, network(value));
    }

    @Override
    void putInt(int at, int value) {
        UNSAFE.putInt(address + at, SWAPPED ? Integer.reverseBytes(value) : value);
    }

    private static short network(short value) {
        return SWAPPED ? Short.reverseBytes(value) : value;
    }
}
