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
        return swap16(raw16(address));
    }

    /** 16 bits in the host's byte order: those of checksums, which are updated in either. */
    static int raw16(long address) {
        return Mem.getShort(address) & 0xFFFF;
    }

    static void putRaw16(long address, int raw) {
        Mem.putShort(address, (short) raw);
    }

    /** From the host's byte order to the network's, and back; {@code value} has 16 bits. */
    static int swap16(int value) {
        return SWAPS ? Integer.reverseBytes(value) >>> 16 : value;
    }

    static int i32(long address) {
        return swap32(raw32(address));
    }

    /** 32 bits in the host's byte order. */
    static int raw32(long address) {
        return Mem.getInt(address);
    }

    static void putRaw32(long address, int raw) {
        Mem.putInt(address, raw);
    }

    static int swap32(int value) {
        return SWAPS ? Integer.reverseBytes(value) : value;
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
        putRaw16(address, swap16(value));
    }

    static void put32(long address, int value) {
        putRaw32(address, swap32(value));
    }

    static void put48(long address, long value) {
        put16(address, (int) (value >>> 32));
        put32(address + 2, (int) value);
    }

    static void put64(long address, long value) {
        Mem.putLong(address, SWAPS ? Long.reverseBytes(value) : value);
    }
}
