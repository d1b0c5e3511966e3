package dev.tamis;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Native memory by its address, in host byte order, without a check: whoever calls has proven the
 * address.
 *
 * <p>Contract: two classes of this name with the same methods. This one, for JDK 22 and later, is
 * {@code java.lang.foreign} with one segment over all memory; that of the base is {@code
 * sun.misc.Unsafe}, which later JDKs warn of. A test holds one to the other.
 */
final class Mem {
    private static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);
    private static final ValueLayout.OfByte BYTE = ValueLayout.JAVA_BYTE;
    private static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT_UNALIGNED;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;

    private Mem() {}

    /** By what memory is read. (A constant would be the base's, wherever it was compiled into.) */
    static String by() {
        return "java.lang.foreign";
    }

    static byte getByte(long address) {
        return ALL.get(BYTE, address);
    }

    static short getShort(long address) {
        return ALL.get(SHORT, address);
    }

    static int getInt(long address) {
        return ALL.get(INT, address);
    }

    static long getLong(long address) {
        return ALL.get(LONG, address);
    }

    static void putByte(long address, byte value) {
        ALL.set(BYTE, address, value);
    }

    static void putShort(long address, short value) {
        ALL.set(SHORT, address, value);
    }

    static void putInt(long address, int value) {
        ALL.set(INT, address, value);
    }

    static void putLong(long address, long value) {
        ALL.set(LONG, address, value);
    }

    /** Copies {@code length} bytes at {@code address} into {@code into} from {@code at} on. */
    static void read(long address, byte[] into, int at, int length) {
        MemorySegment.copy(ALL, BYTE, address, into, at, length);
    }

    /** Copies {@code length} bytes of {@code from}, from {@code at} on, to {@code address}. */
    static void write(long address, byte[] from, int at, int length) {
        MemorySegment.copy(from, at, ALL, BYTE, address, length);
    }
}
