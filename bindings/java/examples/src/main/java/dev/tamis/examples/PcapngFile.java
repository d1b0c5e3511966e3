package dev.tamis.examples;

import dev.tamis.Packet;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * A pcapng file of Ethernet frames of one interface, written byte for byte as tamis writes its own:
 * nanoseconds, no options of packets, little-endian.
 */
final class PcapngFile implements AutoCloseable {
    private static final int SECTION_HEADER = 0x0A0D_0D0A;
    private static final int BYTE_ORDER = 0x1A2B_3C4D;
    private static final int INTERFACE = 1;
    private static final int ENHANCED_PACKET = 6;
    private static final int NAME = 2;
    private static final int RESOLUTION = 9;
    private static final int BLOCK = 32;
    private static final int BUFFER = 1 << 18;

    private final FileChannel file;
    private final ByteBuffer buffer =
            ByteBuffer.allocateDirect(BUFFER).order(ByteOrder.LITTLE_ENDIAN);
    private final byte[] frame = new byte[1 << 16];
    private long written;

    PcapngFile(Path path, String name) throws IOException {
        file =
                FileChannel.open(
                        path,
                        StandardOpenOption.CREATE,
                        StandardOpenOption.WRITE,
                        StandardOpenOption.TRUNCATE_EXISTING);
        byte[] bytes = name.getBytes(StandardCharsets.UTF_8);
        buffer.putInt(SECTION_HEADER)
                .putInt(28)
                .putInt(BYTE_ORDER)
                .putInt(1)
                .putLong(-1)
                .putInt(28);
        int length = 20 + 4 + padded(bytes.length) + 8 + 4;
        buffer.putInt(INTERFACE).putInt(length).putShort((short) 1).putShort((short) 0).putInt(0);
        buffer.putShort((short) NAME).putShort((short) bytes.length).put(bytes);
        pad(bytes.length);
        buffer.putShort((short) RESOLUTION).putShort((short) 1).put((byte) 9);
        pad(1);
        buffer.putInt(0).putInt(length);
        written = buffer.position();
    }

    private static int padded(int length) {
        return length + 3 & ~3;
    }

    private void pad(int length) {
        for (int i = length; i < padded(length); i++) {
            buffer.put((byte) 0);
        }
    }

    /** The bytes of the file so far, those included that are still in memory. */
    long size() {
        return written;
    }

    /** Adds a packet; its first 65,536 bytes if it has more. */
    void add(Packet packet) throws IOException {
        int length = Math.min(packet.length(), frame.length);
        int block = BLOCK + padded(length);
        if (buffer.remaining() < block) {
            flush();
        }
        packet.read(0, frame, 0, length);
        long time = packet.time();
        buffer.putInt(ENHANCED_PACKET)
                .putInt(block)
                .putInt(0)
                .putInt((int) (time >>> 32))
                .putInt((int) time);
        buffer.putInt(length).putInt((int) packet.wireLength()).put(frame, 0, length);
        pad(length);
        buffer.putInt(block);
        written += block;
    }

    private void flush() throws IOException {
        buffer.flip();
        while (buffer.hasRemaining()) {
            file.write(buffer);
        }
        buffer.clear();
    }

    @Override
    public void close() throws IOException {
        try (file) {
            flush();
        }
    }
}
