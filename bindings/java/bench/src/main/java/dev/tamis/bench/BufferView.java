package dev.tamis.bench;

import java.nio.ByteBuffer;

/**
 * A struct in a byte buffer of native order, by the buffer's own methods.
 */
final class BufferView extends Fields {
    private final ByteBuffer buffer;
    private int base;

    BufferView(ByteBuffer buffer) {
        this.buffer = buffer;
    }

    /** Shows the struct that begins at an offset of the buffer. */
    BufferView at(int offset) {
        base = offset;
        return this;
    }

    @Override
    int getPort() {
        return buffer.get(base + PORT) & 0xFF;
    }

    @Override
    void setPort(int value) {
        buffer.put(base + PORT, (byte) value);
    }

    @Override
    int getVlan() {
        return buffer.getShort(base + VLAN) & 0xFFFF;
    }

    @Override
    void setVlan(int value) {
        buffer.putShort(base + VLAN, (short) value);
    }

    @Override
    long getLength() {
        return buffer.getInt(base + LENGTH) & 0xFFFF_FFFFL;
    }

    @Override
    void setLength(long value) {
        buffer.putInt(base + LENGTH, (int) value);
    }

    @Override
    long getFlags() {
        return buffer.getLong(base + FLAGS);
    }

    @Override
    void setFlags(long value) {
        buffer.putLong(base + FLAGS, value);
    }

    @Override
    int getKind() {
        return buffer.get(base + KIND) & 0xFF;
    }

    @Override
    void setKind(int value) {
        buffer.put(base + KIND, (byte) value);
    }

    @Override
    int getQueue() {
        return buffer.getShort(base + QUEUE) & 0xFFFF;
    }

    @Override
    void setQueue(int value) {
        buffer.putShort(base + QUEUE, (short) value);
    }

    @Override
    long getHash() {
        return buffer.getInt(base + HASH) & 0xFFFF_FFFFL;
    }

    @Override
    void setHash(long value) {
        buffer.putInt(base + HASH, (int) value);
    }

    @Override
    long getTime() {
        return buffer.getLong(base + TIME);
    }

    @Override
    void setTime(long value) {
        buffer.putLong(base + TIME, value);
    }

    @Override
    int getHeadroom() {
        return buffer.getShort(base + HEADROOM) & 0xFFFF;
    }

    @Override
    void setHeadroom(int value) {
        buffer.putShort(base + HEADROOM, (short) value);
    }

    @Override
    long getAddress() {
        return buffer.getLong(base + ADDRESS);
    }

    @Override
    void setAddress(long value) {
        buffer.putLong(base + ADDRESS, value);
    }

    @Override
    long getNext() {
        return buffer.getLong(base + NEXT);
    }

    @Override
    void setNext(long value) {
        buffer.putLong(base + NEXT, value);
    }

    @Override
    long getUser() {
        return buffer.getLong(base + USER);
    }

    @Override
    void setUser(long value) {
        buffer.putLong(base + USER, value);
    }
}
