package dev.tamis.bench;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** A frame by {@link VarHandle}s on byte buffers that map all frames and all descriptors: the JVM checks bounds, too. */
final class MappedFrame extends FrameView {
    private static final VarHandle SHORT = big(short[].class);
    private static final VarHandle INT = big(int[].class);
    private static final VarHandle HOST_SHORT = host(short[].class);
    private static final VarHandle HOST_INT = host(int[].class);
    private static final VarHandle HOST_LONG = host(long[].class);

    private final ByteBuffer frames;
    private final ByteBuffer descriptors;
    private final long base;
    private int descriptor;
    private int begin;

    MappedFrame(long handle) {
        frames = Native.framesMapping(handle);
        descriptors = Native.descriptorsMapping(handle);
        base = Native.framesBase(handle);
    }

    private static VarHandle big(Class<?> of) {
        return MethodHandles.byteBufferViewVarHandle(of, ByteOrder.BIG_ENDIAN);
    }

    private static VarHandle host(Class<?> of) {
        return MethodHandles.byteBufferViewVarHandle(of, ByteOrder.nativeOrder());
    }

    @Override
    void point(int index) {
        descriptor = index * DESCRIPTOR;
        begin = (int) ((long) HOST_LONG.get(descriptors, descriptor + ADDRESS) - base);
        length = (int) HOST_INT.get(descriptors, descriptor + LENGTH);
    }

    @Override
    byte descriptorByte(int field) {
        return descriptors.get(descriptor + field);
    }

    @Override
    short descriptorShort(int field) {
        return (short) HOST_SHORT.get(descriptors, descriptor + field);
    }

    @Override
    void putVerdict(byte verdict) {
        descriptors.put(descriptor + VERDICT, verdict);
    }

    @Override
    byte getByte(int at) {
        return frames.get(begin + at);
    }

    @Override
    short getShort(int at) {
        return (short) SHORT.get(frames, begin + at);
    }

    @Override
    int getInt(int at) {
        return (int) INT.get(frames, begin + at);
    }

    @Override
    void putByte(int at, byte value) {
        frames.put(begin + at, value);
    }

    @Override
    void putShort(int at, short value) {
        SHORT.set(frames, begin + at, value);
    }

    @Override
    void putInt(int at, int value) {
        INT.set(frames, begin + at, value);
    }
}
