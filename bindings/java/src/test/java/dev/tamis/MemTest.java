package dev.tamis;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Random;

/**
 * Memory by its address is what a byte buffer of the same bytes says, by whichever class the JDK
 * has it read.
 */
class MemTest {
    private static final int SIZE = 256;

    /** The jar's class for the JDK is the one that is tested: the build says which it expects. */
    @Test
    void itIsTheOneOfThisJdk() {
        assertEquals(System.getProperty("tamis.test.memory", "sun.misc.Unsafe"), Mem.by());
    }

    @Test
    void numbersAreThoseOfAByteBuffer() {
        Random random = new Random(22);
        try (Frames frames = new Frames(1)) {
            byte[] bytes = new byte[SIZE];
            random.nextBytes(bytes);
            frames.put(0, bytes, SIZE, new Frames.Offsets(0, 0, 0, 0, 0));
            long address = frames.packet().at(0, SIZE);
            ByteBuffer host = ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder());
            ByteBuffer network = ByteBuffer.wrap(bytes);
            for (int round = 0; round < 10_000; round++) {
                int at = random.nextInt(SIZE - 7);
                assertEquals(host.get(at), Mem.getByte(address + at));
                assertEquals(host.getShort(at), Mem.getShort(address + at));
                assertEquals(host.getInt(at), Mem.getInt(address + at));
                assertEquals(host.getLong(at), Mem.getLong(address + at));
                assertEquals(network.getShort(at) & 0xFFFF, Net.u16(address + at));
                assertEquals(network.getInt(at), Net.i32(address + at));
                assertEquals(network.getLong(at) >>> 16, Net.u48(address + at));
                assertEquals(network.getLong(at), Net.i64(address + at));
                write(random, address, at, host, network);
            }
            assertArrayEquals(bytes, frames.get(0));
        }
    }

    /** The same write by both. */
    private static void write(
            Random random, long address, int at, ByteBuffer host, ByteBuffer network) {
        long value = random.nextLong();
        switch (random.nextInt(9)) {
            case 0 -> Mem.putByte(address + at, host.put(at, (byte) value).get(at));
            case 1 -> Mem.putShort(address + at, host.putShort(at, (short) value).getShort(at));
            case 2 -> Mem.putInt(address + at, host.putInt(at, (int) value).getInt(at));
            case 3 -> Mem.putLong(address + at, host.putLong(at, value).getLong(at));
            case 4 ->
                    Net.put16(
                            address + at,
                            network.putShort(at, (short) value).getShort(at) & 0xFFFF);
            case 5 -> Net.put32(address + at, network.putInt(at, (int) value).getInt(at));
            case 6 -> Net.put64(address + at, network.putLong(at, value).getLong(at));
            case 7 -> {
                network.putShort(at, (short) (value >>> 32)).putInt(at + 2, (int) value);
                Net.put48(address + at, value & 0xFFFF_FFFF_FFFFL);
            }
            default -> copy(random, address, at, host);
        }
    }

    private static void copy(Random random, long address, int at, ByteBuffer host) {
        byte[] bytes = new byte[SIZE - at + 2];
        random.nextBytes(bytes);
        int n = random.nextInt(SIZE - at + 1);
        host.put(at, bytes, 2, n);
        Mem.write(address + at, bytes, 2, n);
        byte[] read = new byte[n + 1];
        Mem.read(address + at, read, 1, n);
        assertEquals(ByteBuffer.wrap(bytes, 2, n), ByteBuffer.wrap(read, 1, n));
    }
}
