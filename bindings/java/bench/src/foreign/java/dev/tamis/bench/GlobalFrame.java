package dev.tamis.bench;

import static dev.tamis.bench.Layouts.BYTE;
import static dev.tamis.bench.Layouts.INT;
import static dev.tamis.bench.Layouts.LONG;
import static dev.tamis.bench.Layouts.NETWORK_INT;
import static dev.tamis.bench.Layouts.NETWORK_SHORT;
import static dev.tamis.bench.Layouts.SHORT;

import java.lang.foreign.MemorySegment;

/** A frame in the one segment that is all of memory. */
final class GlobalFrame extends FrameView {
    private static final MemorySegment MEMORY = Layouts.EVERYTHING;

    private final long descriptors;
    private long descriptor;
    private long address;

    GlobalFrame(long descriptors) {
        this.descriptors = descriptors;
    }

    @Override
    void point(int index) {
        descriptor = descriptors + (long) index * DESCRIPTOR;
        address = MEMORY.get(LONG, descriptor + ADDRESS);
        length = MEMORY.get(INT, descriptor + LENGTH);
    }

    @Override
    byte descriptorByte(int field) {
        return MEMORY.get(BYTE, descriptor + field);
    }

    @Override
    short descriptorShort(int field) {
        return MEMORY.get(SHORT, descriptor + field);
    }

    @Override
    void putVerdict(byte verdict) {
        MEMORY.set(BYTE, descriptor + VERDICT, verdict);
    }

    @Override
    byte getByte(int at) {
        return MEMORY.get(BYTE, address + at);
    }

    @Override
    short getShort(int at) {
        return MEMORY.get(NETWORK_SHORT, address + at);
    }

    @Override
    int getInt(int at) {
        return MEMORY.get(NETWORK_INT, address + at);
    }

    @Override
    void putByte(int at, byte value) {
        MEMORY.set(BYTE, address + at, value);
    }

    @Override
    void putShort(int at, short value) {
        MEMORY.set(NETWORK_SHORT, address + at, value);
    }

    @Override
    void putInt(int at, int value) {
        MEMORY.set(NETWORK_INT, address + at, value);
    }
}
