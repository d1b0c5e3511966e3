package dev.tamis.bench;

import static java.nio.ByteOrder.nativeOrder;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;

/**
 * A struct in a byte buffer that is a mapping of the whole pool, by {@link VarHandle}s: no copy, and bounds are checked.
 */
final class HandleView extends Fields {
    private static final VarHandle SHORT = MethodHandles.byteBufferViewVarHandle(short[].class, nativeOrder());
    private static final VarHandle INT = MethodHandles.byteBufferViewVarHandle(int[].class, nativeOrder());
    private static final VarHandle LONG = MethodHandles.byteBufferViewVarHandle(long[].class, nativeOrder());

    private final ByteBuffer buffer;
    private int base;

    HandleView(ByteBuffer buffer) {
        this.buffer = buffer;
    }

    /** Shows the struct that begins at an offset of the buffer. */
    HandleView at(int offset) {
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
        return (short) SHORT.get(buffer, base + VLAN) & 0xFFFF;
    }

    @Override
    void setVlan(int value) {
        SHORT.set(buffer, base + VLAN, (short) value);
    }

    @Override
    long getLength() {
        return (int) INT.get(buffer, base + LENGTH) & 0xFFFF_FFFFL;
    }

    @Override
    void setLength(long value) {
        INT.set(buffer, base + LENGTH, (int) value);
    }

    @Override
    long getFlags() {
        return (long) LONG.get(buffer, base + FLAGS);
    }

    @Override
    void setFlags(long value) {
        LONG.set(buffer, base + FLAGS, value);
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
        return (short) SHORT.get(buffer, base + QUEUE) & 0xFFFF;
    }

    @Override
    void setQueue(int value) {
        SHORT.set(buffer, base + QUEUE, (short) value);
    }

    @Override
    long getHash() {
        return (int) INT.get(buffer, base + HASH) & 0xFFFF_FFFFL;
    }

    @Override
    void setHash(long value) {
        INT.set(buffer, base + HASH, (int) value);
    }

    @Override
    long getTime() {
        return (long) LONG.get(buffer, base + TIME);
    }

    @Override
    void setTime(long value) {
        LONG.set(buffer, base + TIME, value);
    }

    @Override
    int getHeadroom() {
        return (short) SHORT.get(buffer, base + HEADROOM) & 0xFFFF;
    }

    @Override
    void setHeadroom(int value) {
        SHORT.set(buffer, base + HEADROOM, (short) value);
    }

    @Override
    long getAddress() {
        return (long) LONG.get(buffer, base + ADDRESS);
    }

    @Override
    void setAddress(long value) {
        LONG.set(buffer, base + ADDRESS, value);
    }

    @Override
    long getNext() {
        return (long) LONG.get(buffer, base + NEXT);
    }

    @Override
    void setNext(long value) {
        LONG.set(buffer, base + NEXT, value);
    }

    @Override
    long getUser() {
        return (long) LONG.get(buffer, base + USER);
    }

    @Override
    void setUser(long value) {
        LONG.set(buffer, base + USER, value);
    }
}
