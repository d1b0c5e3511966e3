package dev.tamis;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Reads captures for tests: pcap and pcapng in little-endian order, as tamis and tcpdump write them
 * here.
 */
final class Captures {
    private static final int PCAPNG = 0x0A0D_0D0A;
    private static final int ENHANCED_PACKET = 6;

    private Captures() {}

    /** The frames of a capture, in order. */
    static List<byte[]> frames(Path capture) throws IOException {
        ByteBuffer bytes =
                ByteBuffer.wrap(Files.readAllBytes(capture)).order(ByteOrder.LITTLE_ENDIAN);
        return bytes.getInt(0) == PCAPNG ? pcapng(bytes) : pcap(bytes);
    }

    private static List<byte[]> pcap(ByteBuffer bytes) {
        List<byte[]> frames = new ArrayList<>();
        for (int at = 24; at < bytes.limit(); at += 16 + bytes.getInt(at + 8)) {
            frames.add(slice(bytes, at + 16, bytes.getInt(at + 8)));
        }
        return frames;
    }

    private static List<byte[]> pcapng(ByteBuffer bytes) {
        List<byte[]> frames = new ArrayList<>();
        for (int at = 0; at < bytes.limit(); at += bytes.getInt(at + 4)) {
            if (bytes.getInt(at) == ENHANCED_PACKET) {
                frames.add(slice(bytes, at + 28, bytes.getInt(at + 20)));
            }
        }
        return frames;
    }

    private static byte[] slice(ByteBuffer bytes, int at, int length) {
        byte[] slice = new byte[length];
        bytes.get(at, slice);
        return slice;
    }
}
