package dev.tamis.bench;

import static dev.tamis.bench.Layouts.BYTE;
import static dev.tamis.bench.Layouts.INT;
import static dev.tamis.bench.Layouts.LONG;
import static dev.tamis.bench.Layouts.SHORT;

import java.lang.foreign.MemorySegment;

/**
 * A struct in the one segment that is all of memory, a constant: no bounds to speak of, as {@link DirectView}.
 */
final class GlobalView extends Fields {
    private static final MemorySegment MEMORY = Layouts.EVERYTHING;

    private long base;

    /** Shows the struct at an address. */
    GlobalView at(long address) {
        base = address;
        return this;
    }

    @Override
    int getPort() {
        return MEMORY.get(BYTE, base + PORT) & 0xFF;
    }

    @Override
    void setPort(int value) {
        MEMORY.set(BYTE, base + PORT, (byte) value);
    }

    @Override
    int getVlan() {
        return MEMORY.get(SHORT, base + VLAN) & 0xFFFF;
    }

    @Override
    void setVlan(int value) {
        MEMORY.set(SHORT, base + VLAN, (short) value);
    }

    @Override
    long getLength() {
        return MEMORY.get(INT, base + LENGTH) & 0xFFFF_FFFFL;
    }

    @Override
    void setLength(long value) {
        MEMORY.set(INT, base + LENGTH, (int) value);
    }

    @Override
    long getFlags() {
        return MEMORY.get(LONG, base + FLAGS);
    }

    @Override
    void setFlags(long value) {
        MEMORY.set(LONG, base + FLAGS, value);
    }

    @Override
    int getKind() {
        return MEMORY.get(BYTE, base + KIND) & 0xFF;
    }

    @Override
    void setKind(int value) {
        MEMORY.set(BYTE, base + KIND, (byte) value);
    }

    @Override
    int getQueue() {
        return MEMORY.get(SHORT, base + QUEUE) & 0xFFFF;
    }

    @Override
    void setQueue(int value) {
        MEMORY.set(SHORT, base + QUEUE, (short) value);
    }

    @Override
    long getHash() {
        return MEMORY.get(INT, base + HASH) & 0xFFFF_FFFFL;
    }

    @Override
    void setHash(long value) {
        MEMORY.set(INT, base + HASH, (int) value);
    }

    @Override
    long getTime() {
        return MEMORY.get(LONG, base + TIME);
    }

    @Override
    void setTime(long value) {
        MEMORY.set(LONG, base + TIME, value);
    }

    @Override
    int getHeadroom() {
        return MEMORY.get(SHORT, base + HEADROOM) & 0xFFFF;
    }

    @Override
    void setHeadroom(int value) {
        MEMORY.set(SHORT, base + HEADROOM, (short) value);
    }

    @Override
    long getAddress() {
        return MEMORY.get(LONG, base + ADDRESS);
    }

    @Override
    void setAddress(long value) {
        MEMORY.set(LONG, base + ADDRESS, value);
    }

    @Override
    long getNext() {
        return MEMORY.get(LONG, base + NEXT);
    }

    @Override
    void setNext(long value) {
        MEMORY.set(LONG, base + NEXT, value);
    }

    @Override
    long getUser() {
        return MEMORY.get(LONG, base + USER);
    }

    @Override
    void setUser(long value) {
        MEMORY.set(LONG, base + USER, value);
    }
}
