package dev.tamis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import sun.misc.Unsafe;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.lang.management.ManagementFactory;
import java.util.Arrays;

/**
 * What the study says that Unsafe can do besides reading packets, each done once: objects without
 * their constructor, private fields, strings that are wiped, casts across classes, serialization.
 * Nothing of tamis does any of it.
 *
 * <p>{@code main} times the serialization, as no test does.
 */
class UnsafeUsesTest {
    private static final Unsafe UNSAFE = Frames.unsafe();
    private static final int ROUNDS = 100_000;

    private static long offset(Class<?> of, String field) throws NoSuchFieldException {
        return UNSAFE.objectFieldOffset(of.getDeclaredField(field));
    }

    /** There is one of it, as long as its constructor is asked. */
    static final class Single {
        private static int made;
        private final int number;

        private Single(int number) {
            made++;
            this.number = number;
        }
    }

    @Test
    void anObjectIsThereWithoutItsConstructor() throws InstantiationException {
        Single first = new Single(7);
        Single second = (Single) UNSAFE.allocateInstance(Single.class);
        assertEquals(1, Single.made);
        assertEquals(7, first.number);
        assertEquals(0, second.number);
    }

    @Test
    void aPrivateFinalFieldIsWritten() throws ReflectiveOperationException {
        Single single = (Single) UNSAFE.allocateInstance(Single.class);
        UNSAFE.putInt(single, offset(Single.class, "number"), 41);
        assertEquals(41, Single.class.getDeclaredField("number").getInt(single));
    }

    @Test
    void aPasswordIsOverwrittenWhereItLies() throws NoSuchFieldException {
        String password = new String(new char[] {'s', 'e', 'c', 'r', 'e', 't'});
        String alias = password;
        byte[] letters = (byte[]) UNSAFE.getObject(password, offset(String.class, "value"));
        Arrays.fill(letters, (byte) '*');
        assertEquals("******", alias);
    }

    static class Celsius {
        int degrees = 20;
    }

    static final class Fahrenheit {
        int degrees = 68;
    }

    /** Its fields are read where the other class has them; a call of a method ends JVM 17. */
    @Test
    void anObjectIsTakenForOneOfAnotherClass() {
        Object celsius = new Celsius();
        assertThrows(ClassCastException.class, () -> Fahrenheit.class.cast(celsius));
        Fahrenheit[] taken = new Fahrenheit[1];
        UNSAFE.putObject(taken, (long) Unsafe.ARRAY_OBJECT_BASE_OFFSET, celsius);
        assertEquals(20, taken[0].degrees);
    }

    /** What is sent: fields of some widths. */
    static final class Sent implements Serializable {
        private static final long serialVersionUID = 1;
        private static final int SIZE = 24;

        long source = 1;
        long destination = 2;
        int length = 3;
        int hash = 4;

        void write(long address) {
            UNSAFE.putLong(address, source);
            UNSAFE.putLong(address + 8, destination);
            UNSAFE.putInt(address + 16, length);
            UNSAFE.putInt(address + 20, hash);
        }

        void read(long address) {
            source = UNSAFE.getLong(address);
            destination = UNSAFE.getLong(address + 8);
            length = UNSAFE.getInt(address + 16);
            hash = UNSAFE.getInt(address + 20);
        }

        long sum() {
            return source + 3 * destination + 5L * length + 7L * hash;
        }
    }

    private static int byStream(Sent sent, Sent[] back) throws IOException, ClassNotFoundException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(sent);
        }
        byte[] said = bytes.toByteArray();
        try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(said))) {
            back[0] = (Sent) in.readObject();
        }
        return said.length;
    }

    private static void byUnsafe(Sent sent, Sent[] back, long address) {
        sent.write(address);
        back[0].read(address);
    }

    private static long allocated() {
        return ((com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean())
                .getCurrentThreadAllocatedBytes();
    }

    @Test
    void anObjectIsSentInItsOwnBytesAndNothingIsAllocated() throws Exception {
        Sent sent = new Sent();
        Sent[] back = {new Sent()};
        sent.hash = 99;
        assertTrue(byStream(sent, back) > 3 * Sent.SIZE);
        assertEquals(sent.sum(), back[0].sum());
        back[0] = new Sent();
        long address = UNSAFE.allocateMemory(Sent.SIZE);
        try {
            long before = allocated();
            for (int round = 0; round < 1000; round++) {
                sent.hash = round;
                byUnsafe(sent, back, address);
            }
            long each = (allocated() - before) / 1000;
            assertEquals(sent.sum(), back[0].sum());
            assertTrue(each < 8, each + " bytes an object");
        } finally {
            UNSAFE.freeMemory(address);
        }
    }

    /** Prints nanoseconds for an object there and back, by streams and by Unsafe, best of ten. */
    public static void main(String[] arguments) throws Exception {
        Sent sent = new Sent();
        Sent[] back = {new Sent()};
        long address = UNSAFE.allocateMemory(Sent.SIZE);
        double streams = Double.MAX_VALUE;
        double unsafe = Double.MAX_VALUE;
        long sum = 0;
        for (int run = 0; run < 10; run++) {
            long start = System.nanoTime();
            for (int round = 0; round < ROUNDS; round++) {
                sent.hash = round;
                byStream(sent, back);
                sum += back[0].sum();
            }
            streams = Math.min(streams, (System.nanoTime() - start) / (double) ROUNDS);
            start = System.nanoTime();
            for (int round = 0; round < ROUNDS; round++) {
                sent.hash = round;
                byUnsafe(sent, back, address);
                sum += back[0].sum();
            }
            unsafe = Math.min(unsafe, (System.nanoTime() - start) / (double) ROUNDS);
        }
        UNSAFE.freeMemory(address);
        System.out.printf("streams %.0f ns, Unsafe %.2f ns (%d)%n", streams, unsafe, sum);
    }
}
