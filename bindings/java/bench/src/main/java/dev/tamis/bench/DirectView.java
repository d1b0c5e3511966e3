package dev.tamis.bench;

import static dev.tamis.bench.Memory.UNSAFE;

/**
 * The study's direct technique: a pointer and offsets; each access goes to the struct itself, packed as it is.
 */
final class DirectView extends Fields {
    private long base;

    /** Shows the struct at an address. */
    DirectView at(long address) {
        base = address;
        return this;
    }

    @Override
    int getPort() {
        return UNSAFE.getByte(base + PORT) & 0xFF;
    }

    @Override
    void setPort(int value) {
        UNSAFE.putByte(base + PORT, (byte) value);
    }

    @Override
    int getVlan() {
        return UNSAFE.getShort(base + VLAN) & 0xFFFF;
    }

    @Override
    void setVlan(int value) {
        UNSAFE.putShort(base + VLAN, (short) value);
    }

    @Override
    long getLength() {
        return UNSAFE.getInt(base + LENGTH) & 0xFFFF_FFFFL;
    }

    @Override
    void setLength(long value) {
        UNSAFE.putInt(base + LENGTH, (int) value);
    }

    @Override
    long getFlags() {
        return UNSAFE.getLong(base + FLAGS);
    }

    @Override
    void setFlags(long value) {
        UNSAFE.putLong(base + FLAGS, value);
    }

    @Override
    int getKind() {
        return UNSAFE.getByte(base + KIND) & 0xFF;
    }

    @Override
    void setKind(int value) {
        UNSAFE.putByte(base + KIND, (byte) value);
    }

    @Override
    int getQueue() {
        return UNSAFE.getShort(base + QUEUE) & 0xFFFF;
    }

    @Override
    void setQueue(int value) {
        UNSAFE.putShort(base + QUEUE, (short) value);
    }

    @Override
    long getHash() {
        return UNSAFE.getInt(base + HASH) & 0xFFFF_FFFFL;
    }

    @Override
    void setHash(long value) {
        UNSAFE.putInt(base + HASH, (int) value);
    }

    @Override
    long getTime() {
        return UNSAFE.getLong(base + TIME);
    }

    @Override
    void setTime(long value) {
        UNSAFE.putLong(base + TIME, value);
    }

    @Override
    int getHeadroom() {
        return UNSAFE.getShort(base + HEADROOM) & 0xFFFF;
    }

    @Override
    void setHeadroom(int value) {
        UNSAFE.putShort(base + HEADROOM, (short) value);
    }

    @Override
    long getAddress() {
        return UNSAFE.getLong(base + ADDRESS);
    }

    @Override
    void setAddress(long value) {
        UNSAFE.putLong(base + ADDRESS, value);
    }

    @Override
    long getNext() {
        return UNSAFE.getLong(base + NEXT);
    }

    @Override
    void setNext(long value) {
        UNSAFE.putLong(base + NEXT, value);
    }

    @Override
    long getUser() {
        return UNSAFE.getLong(base + USER);
    }

    @Override
    void setUser(long value) {
        UNSAFE.putLong(base + USER, value);
    }
}
