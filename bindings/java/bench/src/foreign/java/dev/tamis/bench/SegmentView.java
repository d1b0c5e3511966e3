package dev.tamis.bench;

import static dev.tamis.bench.Layouts.BYTE;
import static dev.tamis.bench.Layouts.INT;
import static dev.tamis.bench.Layouts.LONG;
import static dev.tamis.bench.Layouts.SHORT;

import java.lang.foreign.MemorySegment;

/**
 * A struct in a segment of the pool: the JVM checks each access against the segment's bounds.
 */
final class SegmentView extends Fields {
    private final MemorySegment memory;
    private long base;

    SegmentView(MemorySegment memory) {
        this.memory = memory;
    }

    /** Shows the struct at an address of the segment. */
    SegmentView at(long address) {
        base = address;
        return this;
    }

    @Override
    int getPort() {
        return memory.get(BYTE, base + PORT) & 0xFF;
    }

    @Override
    void setPort(int value) {
        memory.set(BYTE, base + PORT, (byte) value);
    }

    @Override
    int getVlan() {
        return memory.get(SHORT, base + VLAN) & 0xFFFF;
    }

    @Override
    void setVlan(int value) {
        memory.set(SHORT, base + VLAN, (short) value);
    }

    @Override
    long getLength() {
        return memory.get(INT, base + LENGTH) & 0xFFFF_FFFFL;
    }

    @Override
    void setLength(long value) {
        memory.set(INT, base + LENGTH, (int) value);
    }

    @Override
    long getFlags() {
        return memory.get(LONG, base + FLAGS);
    }

    @Override
    void setFlags(long value) {
        memory.set(LONG, base + FLAGS, value);
    }

    @Override
    int getKind() {
        return memory.get(BYTE, base + KIND) & 0xFF;
    }

    @Override
    void setKind(int value) {
        memory.set(BYTE, base + KIND, (byte) value);
    }

    @Override
    int getQueue() {
        return memory.get(SHORT, base + QUEUE) & 0xFFFF;
    }

    @Override
    void setQueue(int value) {
        memory.set(SHORT, base + QUEUE, (short) value);
    }

    @Override
    long getHash() {
        return memory.get(INT, base + HASH) & 0xFFFF_FFFFL;
    }

    @Override
    void setHash(long value) {
        memory.set(INT, base + HASH, (int) value);
    }

    @Override
    long getTime() {
        return memory.get(LONG, base + TIME);
    }

    @Override
    void setTime(long value) {
        memory.set(LONG, base + TIME, value);
    }

    @Override
    int getHeadroom() {
        return memory.get(SHORT, base + HEADROOM) & 0xFFFF;
    }

    @Override
    void setHeadroom(int value) {
        memory.set(SHORT, base + HEADROOM, (short) value);
    }

    @Override
    long getAddress() {
        return memory.get(LONG, base + ADDRESS);
    }

    @Override
    void setAddress(long value) {
        memory.set(LONG, base + ADDRESS, value);
    }

    @Override
    long getNext() {
        return memory.get(LONG, base + NEXT);
    }

    @Override
    void setNext(long value) {
        memory.set(LONG, base + NEXT, value);
    }

    @Override
    long getUser() {
        return memory.get(LONG, base + USER);
    }

    @Override
    void setUser(long value) {
        memory.set(LONG, base + USER, value);
    }
}
