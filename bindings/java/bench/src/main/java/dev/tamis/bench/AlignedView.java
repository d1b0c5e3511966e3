package dev.tamis.bench;

import static dev.tamis.bench.Memory.UNSAFE;

/**
 * {@link DirectView} of a struct as a compiler aligns it, 64 bytes instead of 56.
 */
final class AlignedView extends Fields {
    private long base;

    /** Shows the struct at an address. */
    AlignedView at(long address) {
        base = address;
        return this;
    }

    @Override
    int getPort() {
        return UNSAFE.getByte(base) & 0xFF;
    }

    @Override
    void setPort(int value) {
        UNSAFE.putByte(base, (byte) value);
    }

    @Override
    int getVlan() {
        return UNSAFE.getShort(base + 2) & 0xFFFF;
    }

    @Override
    void setVlan(int value) {
        UNSAFE.putShort(base + 2, (short) value);
    }

    @Override
    long getLength() {
        return UNSAFE.getInt(base + 4) & 0xFFFF_FFFFL;
    }

    @Override
    void setLength(long value) {
        UNSAFE.putInt(base + 4, (int) value);
    }

    @Override
    long getFlags() {
        return UNSAFE.getLong(base + 8);
    }

    @Override
    void setFlags(long value) {
        UNSAFE.putLong(base + 8, value);
    }

    @Override
    int getKind() {
        return UNSAFE.getByte(base + 16) & 0xFF;
    }

    @Override
    void setKind(int value) {
        UNSAFE.putByte(base + 16, (byte) value);
    }

    @Override
    int getQueue() {
        return UNSAFE.getShort(base + 18) & 0xFFFF;
    }

    @Override
    void setQueue(int value) {
        UNSAFE.putShort(base + 18, (short) value);
    }

    @Override
    long getHash() {
        return UNSAFE.getInt(base + 20) & 0xFFFF_FFFFL;
    }

    @Override
    void setHash(long value) {
        UNSAFE.putInt(base + 20, (int) value);
    }

    @Override
    long getTime() {
        return UNSAFE.getLong(base + 24);
    }

    @Override
    void setTime(long value) {
        UNSAFE.putLong(base + 24, value);
    }

    @Override
    int getHeadroom() {
        return UNSAFE.getShort(base + 32) & 0xFFFF;
    }

    @Override
    void setHeadroom(int value) {
        UNSAFE.putShort(base + 32, (short) value);
    }

    @Override
    long getAddress() {
        return UNSAFE.getLong(base + 40);
    }

    @Override
    void setAddress(long value) {
        UNSAFE.putLong(base + 40, value);
    }

    @Override
    long getNext() {
        return UNSAFE.getLong(base + 48);
    }

    @Override
    void setNext(long value) {
        UNSAFE.putLong(base + 48, value);
    }

    @Override
    long getUser() {
        return UNSAFE.getLong(base + 56);
    }

    @Override
    void setUser(long value) {
        UNSAFE.putLong(base + 56, value);
    }
}
