package dev.tamis.bench;

import java.lang.reflect.Field;
import sun.misc.Unsafe;

/** {@code sun.misc.Unsafe}, got as the study gets it. */
final class Memory {
    static final Unsafe UNSAFE = unsafe();

    private Memory() {}

    private static Unsafe unsafe() {
        try {
            Field field = Unsafe.class.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            return (Unsafe) field.get(null);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }
}
