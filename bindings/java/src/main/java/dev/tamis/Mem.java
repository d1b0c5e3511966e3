package dev.tamis;

import sun.misc.Unsafe;

import java.lang.reflect.Field;

/**
 * Native memory by its address, in host byte order, without a check: whoever calls has proven the
 * address.
 *
 * <p>Contract: two classes of this name with the same methods. This one, for JDK 17 to 21, is
 * {@code sun.misc.Unsafe}; that of {@code META-INF/versions/22} is {@code java.lang.foreign}. A
 * test holds one to the other.
 */
final class Mem {
    private static final Unsafe UNSAFE = unsafe();
    private static final long BYTES = Unsafe.ARRAY_BYTE_BASE_OFFSET;

    private Mem() {}

    /** By what memory is read. (A constant would be the base's, wherever it was compiled into.) */
    static String by() {
        return "sun.misc.Unsafe";
    }

    private static Unsafe unsafe() {
        try {
            Field field = Unsafe.class.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            return (Unsafe) field.get(null);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    static byte getByte(long address) {
        return UNSAFE.getByte(address);
    }

    static short getShort(long address) {
        return UNSAFE.getShort(address);
    }

    static int getInt(long address) {
        return UNSAFE.getInt(address);
    }

    static long getLong(long address) {
        return UNSAFE.getLong(address);
    }

    static void putByte(long address, byte value) {
        UNSAFE.putByte(address, value);
    }

    static void putShort(long address, short value) {
        UNSAFE.putShort(address, value);
    }

    static void putInt(long address, int value) {
        UNSAFE.putInt(address, value);
    }

    static void putLong(long address, long value) {
        UNSAFE.putLong(address, value);
    }

    /** Copies {@code length} bytes at {@code address} into {@code into} from {@code at} on. */
    static void read(long address, byte[] into, int at, int length) {
        UNSAFE.copyMemory(null, address, into, BYTES + at, length);
    }

    /** Copies {@code length} bytes of {@code from}, from {@code at} on, to {@code address}. */
    static void write(long address, byte[] from, int at, int length) {
        UNSAFE.copyMemory(from, BYTES + at, null, address, length);
    }
}
