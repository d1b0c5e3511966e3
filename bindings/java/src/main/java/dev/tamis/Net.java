package dev.tamis;

import java.nio.ByteOrder;

/** Unsigned numbers in network byte order, at addresses that the caller has proven. */
final class Net {
    private static final boolean SWAPS = ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN;

    private Net() {}

    static int u8(long address) {
        return Mem.getByte(address) & 0xFF;
    }

    static int u16(long address) {
        short raw = Mem.getShort(address);
        return (SWAPS ? Short.reverseBytes(raw) : raw) & 0xFFFF;
    }

    static int i32(long address) {
        int raw = Mem.getInt(address);
        return SWAPS ? Integer.reverseBytes(raw) : raw;
    }

    static long u32(long address) {
        return i32(address) & 0xFFFF_FFFFL;
    }

    static long u48(long address) {
        return (long) u16(address) << 32 | u32(address + 2);
    }

    static long i64(long address) {
        long raw = Mem.getLong(address);
        return SWAPS ? Long.reverseBytes(raw) : raw;
    }

    static void put8(long address, int value) {
        Mem.putByte(address, (byte) value);
    }

    static void put16(long address, int value) {
        short raw = (short) value;
        Mem.putShort(address, SWAPS ? Short.reverseBytes(raw) : raw);
    }

    static void put32(long address, int value) {
        Mem.putInt(address, SWAPS ? Integer.reverseBytes(value) : value);
    }

    static void put48(long address, long value) {
        put16(address, (int) (value >>> 32));
        put32(address + 2, (int) value);
    }

    static void put64(long address, long value) {
        Mem.putLong(address, SWAPS ? Long.reverseBytes(value) : value);
    }
}
