package dev.tamis.bench;

import java.nio.ByteBuffer;

/**
 * A struct in a byte buffer of the order that buffers have by default, big-endian: every value is turned round.
 */
final class SwappedView extends Fields {
    private final ByteBuffer buffer;
    private int base;

    SwappedView(ByteBuffer buffer) {
        this.buffer = buffer;
    }

    /** Shows the struct that begins at an offset of the buffer. */
    SwappedView at(int offset) {
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
        return Short.reverseBytes(buffer.getShort(base + VLAN)) & 0xFFFF;
    }

    @Override
    void setVlan(int value) {
        buffer.putShort(base + VLAN, Short.reverseBytes((short) value));
    }

    @Override
    long getLength() {
        return Integer.reverseBytes(buffer.getInt(base + LENGTH)) & 0xFFFF_FFFFL;
    }

    @Override
    void setLength(long value) {
        buffer.putInt(base + LENGTH, Integer.reverseBytes((int) value));
    }

    @Override
    long getFlags() {
        return Long.reverseBytes(buffer.getLong(base + FLAGS));
    }

    @Override
    void setFlags(long value) {
        buffer.putLong(base + FLAGS, Long.reverseBytes(value));
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
        return Short.reverseBytes(buffer.getShort(base + QUEUE)) & 0xFFFF;
    }

    @Override
    void setQueue(int value) {
        buffer.putShort(base + QUEUE, Short.reverseBytes((short) value));
    }

    @Override
    long getHash() {
        return Integer.reverseBytes(buffer.getInt(base + HASH)) & 0xFFFF_FFFFL;
    }

    @Override
    void setHash(long value) {
        buffer.putInt(base + HASH, Integer.reverseBytes((int) value));
    }

    @Override
    long getTime() {
        return Long.reverseBytes(buffer.getLong(base + TIME));
    }

    @Override
    void setTime(long value) {
        buffer.putLong(base + TIME, Long.reverseBytes(value));
    }

    @Override
    int getHeadroom() {
        return Short.reverseBytes(buffer.getShort(base + HEADROOM)) & 0xFFFF;
    }

    @Override
    void setHeadroom(int value) {
        buffer.putShort(base + HEADROOM, Short.reverseBytes((short) value));
    }

    @Override
    long getAddress() {
        return Long.reverseBytes(buffer.getLong(base + ADDRESS));
    }

    @Override
    void setAddress(long value) {
        buffer.putLong(base + ADDRESS, Long.reverseBytes(value));
    }

    @Override
    long getNext() {
        return Long.reverseBytes(buffer.getLong(base + NEXT));
    }

    @Override
    void setNext(long value) {
        buffer.putLong(base + NEXT, Long.reverseBytes(value));
    }

    @Override
    long getUser() {
        return Long.reverseBytes(buffer.getLong(base + USER));
    }

    @Override
    void setUser(long value) {
        buffer.putLong(base + USER, Long.reverseBytes(value));
    }
}
