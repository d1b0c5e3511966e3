package dev.tamis.bench;

import static dev.tamis.bench.Layouts.BYTE;
import static dev.tamis.bench.Layouts.INT;
import static dev.tamis.bench.Layouts.LONG;
import static dev.tamis.bench.Layouts.NETWORK_INT;
import static dev.tamis.bench.Layouts.NETWORK_SHORT;
import static dev.tamis.bench.Layouts.SHORT;

import java.lang.foreign.MemorySegment;

/** A frame in a segment of all buffers, its descriptor in another one: the JVM checks bounds, too. */
final class SegmentFrame extends FrameView {
    private final MemorySegment frames;
    private final MemorySegment descriptors;
    private final long base;
    private long descriptor;
    private long begin;

    SegmentFrame(long handle) {
        frames = MemorySegment.ofBuffer(Native.framesMapping(handle));
        descriptors = MemorySegment.ofBuffer(Native.descriptorsMapping(handle));
        base = Native.framesBase(handle);
    }

    @Override
    void point(int index) {
        descriptor = (long) index * DESCRIPTOR;
        begin = descriptors.get(LONG, descriptor + ADDRESS) - base;
        length = descriptors.get(INT, descriptor + LENGTH);
    }

    @Override
    byte descriptorByte(int field) {
        return descriptors.get(BYTE, descriptor + field);
    }

    @Override
    short descriptorShort(int field) {
        return descriptors.get(SHORT, descriptor + field);
    }

    @Override
    void putVerdict(byte verdict) {
        descriptors.set(BYTE, descriptor + VERDICT, verdict);
    }

    @Override
    byte getByte(int at) {
        return frames.get(BYTE, begin + at);
    }

    @Override
    short getShort(int at) {
        return frames.get(NETWORK_SHORT, begin + at);
    }

    @Override
    int getInt(int at) {
        return frames.get(NETWORK_INT, begin + at);
    }

    @Override
    void putByte(int at, byte value) {
        frames.set(BYTE, begin + at, value);
    }

    @Override
    void putShort(int at, short value) {
        frames.set(NETWORK_SHORT, begin + at, value);
    }

    @Override
    void putInt(int at, int value) {
        frames.set(NETWORK_INT, begin + at, value);
    }
}
