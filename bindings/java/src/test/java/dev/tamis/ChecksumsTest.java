package dev.tamis;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.util.Random;

/**
 * Checksums that setters keep, held to those that are computed from all bytes ({@link
 * Crafted#right}).
 */
class ChecksumsTest {
    private static final int ROUNDS = 20_000;

    /** A value that is often one at which sums wrap. */
    private static long value(Random random, long max) {
        return switch (random.nextInt(4)) {
            case 0 -> 0;
            case 1 -> max;
            default -> random.nextLong() & max;
        };
    }

    private static byte[] frame(Random random) {
        int[] protocols = {Crafted.TCP, Crafted.UDP, Crafted.ICMP, Crafted.ICMPV6};
        int protocol = protocols[random.nextInt(4)];
        int payload = random.nextInt(40);
        if (protocol == Crafted.ICMPV6 || protocol != Crafted.ICMP && random.nextBoolean()) {
            return Crafted.ipv6(random, protocol, payload);
        }
        return Crafted.ipv4(random, protocol, random.nextInt(3), 4 * random.nextInt(11), payload);
    }

    /** Sets one field of those that checksums cover. */
    private static void change(Random random, Packet packet) {
        if (random.nextBoolean()) {
            changeNetwork(random, packet);
        } else if (packet.isTcp()) {
            changeTcp(random, packet.tcp());
        } else if (packet.isUdp()) {
            int port = (int) value(random, 0xFFFF);
            Udp udp =
                    random.nextBoolean()
                            ? packet.udp().sourcePort(port)
                            : packet.udp().destinationPort(port);
            assertEquals(packet.transportOffset(), udp.offset());
        } else {
            changeIcmp(random, packet.icmp());
        }
    }

    private static void changeNetwork(Random random, Packet packet) {
        if (packet.isIpv6()) {
            long high = value(random, -1);
            long low = value(random, -1);
            switch (random.nextInt(4)) {
                case 0 -> packet.ipv6().source(high, low);
                case 1 -> packet.ipv6().destination(high, low);
                case 2 -> packet.ipv6().hopLimit((int) value(random, 0xFF));
                default ->
                        packet.ipv6()
                                .trafficClass((int) value(random, 0xFF))
                                .flowLabel((int) value(random, 0xFFFFF));
            }
            return;
        }
        Ipv4 ipv4 = packet.ipv4();
        switch (random.nextInt(6)) {
            case 0 -> ipv4.source(value(random, 0xFFFF_FFFFL));
            case 1 -> ipv4.destination(value(random, 0xFFFF_FFFFL));
            case 2 -> ipv4.ttl((int) value(random, 0xFF));
            case 3 -> ipv4.tos((int) value(random, 0xFF));
            case 4 -> ipv4.identification((int) value(random, 0xFFFF));
            default -> ipv4.dontFragment(random.nextBoolean());
        }
    }

    private static void changeTcp(Random random, Tcp tcp) {
        switch (random.nextInt(7)) {
            case 0 -> tcp.sourcePort((int) value(random, 0xFFFF));
            case 1 -> tcp.destinationPort((int) value(random, 0xFFFF));
            case 2 -> tcp.sequence(value(random, 0xFFFF_FFFFL));
            case 3 -> tcp.acknowledgment(value(random, 0xFFFF_FFFFL));
            case 4 -> tcp.flags((int) value(random, 0xFF));
            case 5 -> tcp.window((int) value(random, 0xFFFF));
            default -> tcp.urgent((int) value(random, 0xFFFF));
        }
    }

    private static void changeIcmp(Random random, Icmp icmp) {
        switch (random.nextInt(4)) {
            case 0 -> icmp.type((int) value(random, 0xFF));
            case 1 -> icmp.code((int) value(random, 0xFF));
            case 2 -> icmp.identifier((int) value(random, 0xFFFF));
            default -> icmp.sequence((int) value(random, 0xFFFF));
        }
    }

    @Test
    void afterAnyChangesTheyAreThoseOfTheWholePacket() {
        Random random = new Random(1624);
        try (Frames frames = new Frames(1)) {
            for (int round = 0; round < ROUNDS; round++) {
                frames.put(0, frame(random));
                Packet packet = frames.packet();
                for (int i = random.nextInt(6); i >= 0; i--) {
                    change(random, packet);
                }
                byte[] changed = frames.get(0);
                assertArrayEquals(Crafted.right(changed), changed, "round " + round);
            }
        }
    }

    @Test
    void ofUdpNoneStaysNone() {
        Random random = new Random(768);
        byte[] frame = Crafted.ipv4(random, Crafted.UDP, 0, 0, 10);
        frame[14 + 20 + 6] = 0;
        frame[14 + 20 + 7] = 0;
        try (Frames frames = new Frames(1)) {
            frames.put(0, frame);
            Packet packet = frames.packet();
            packet.ipv4().source(1).destination(2);
            packet.udp().sourcePort(3).destinationPort(4).length(5);
            packet.fixChecksums();
            assertEquals(0, packet.udp().checksum());
        }
    }

    /** Of all source ports one makes it 0, which would mean none. */
    @Test
    void ofUdpZeroIsWrittenAsTheOtherZero() {
        byte[] frame = Crafted.ipv4(new Random(8), Crafted.UDP, 0, 0, 10);
        int others = 0;
        try (Frames frames = new Frames(1)) {
            frames.put(0, frame);
            Packet packet = frames.packet();
            for (int port = 0; port <= 0xFFFF; port++) {
                packet.udp().sourcePort(port);
                assertArrayEquals(Crafted.right(frames.get(0)), frames.get(0), "port " + port);
                others += packet.udp().checksum() == 0xFFFF ? 1 : 0;
                packet.fixChecksums();
                assertArrayEquals(Crafted.right(frames.get(0)), frames.get(0), "port " + port);
            }
        }
        // Two ports, 0 and 65,535, count the same.
        assertTrue(others == 1 || others == 2, others + " ports");
    }

    /** The length is in the header, and once more in what the checksum covers besides. */
    @Test
    void theLengthOfUdpCountsTwice() {
        try (Frames frames = new Frames(1)) {
            Random random = new Random(3);
            byte[] frame = Crafted.ipv4(random, Crafted.UDP, 0, 0, 10);
            frames.put(0, frame);
            Packet packet = frames.packet();
            packet.trim(4);
            packet.u32(packet.length() - 4, 0);
            packet.fixChecksums();
            packet.ipv4().totalLength(packet.ipv4().totalLength() - 4);
            packet.udp().length(14);
            packet.fixChecksums();
            int expected = packet.udp().checksum();
            packet.udp().length(1000).length(14);
            assertEquals(expected, packet.udp().checksum());
            assertArrayEquals(Crafted.right(frames.get(0)), frames.get(0));
            packet.udp().length(15);
            assertEquals(
                    Checksum.update(Checksum.update(expected, 14, 15), 14, 15),
                    packet.udp().checksum());
        }
    }

    @Test
    void fixedAreThoseOfTheWholePacket() {
        Random random = new Random(1071);
        try (Frames frames = new Frames(1)) {
            for (int round = 0; round < ROUNDS; round++) {
                byte[] frame = frame(random);
                frames.put(0, frame);
                Packet packet = frames.packet();
                int payload = packet.transportOffset() + (packet.isTcp() ? 20 : 8);
                for (int at = payload; at < frame.length; at++) {
                    packet.u8(at, random.nextInt(256));
                }
                packet.fixChecksums();
                byte[] fixed = frames.get(0);
                assertArrayEquals(Crafted.right(fixed), fixed, "round " + round);
            }
        }
    }

    /**
     * By the sum as RFC 1624 writes it, and in the other byte order, in which setters update what
     * they find.
     */
    @Test
    void inEitherByteOrderTheyAreTheSame() {
        Random random = new Random(1071);
        for (int round = 0; round < 50 * ROUNDS; round++) {
            int checksum = (int) value(random, 0xFFFF);
            int before = (int) value(random, 0xFFFF_FFFFL);
            int after = (int) value(random, 0xFFFF_FFFFL);
            int low = slow(checksum, before & 0xFFFF, after & 0xFFFF);
            assertEquals(low, Checksum.update(checksum, before, after & 0xFFFF));
            assertEquals(
                    other(low),
                    Checksum.update(
                            other(checksum), other(before & 0xFFFF), other(after & 0xFFFF)));
            int both = slow(low, before >>> 16, after >>> 16);
            assertEquals(both, Checksum.update32(checksum, before, after));
            assertEquals(
                    other(both),
                    Checksum.update32(
                            other(checksum),
                            Integer.reverseBytes(before),
                            Integer.reverseBytes(after)));
        }
    }

    private static int slow(int checksum, int before, int after) {
        int sum = (~checksum & 0xFFFF) + (~before & 0xFFFF) + after;
        while (sum > 0xFFFF) {
            sum = (sum & 0xFFFF) + (sum >>> 16);
        }
        return ~sum & 0xFFFF;
    }

    private static int other(int word) {
        return Short.reverseBytes((short) word) & 0xFFFF;
    }

    /** What is not in memory cannot be summed up: a checksum that covers it stays. */
    @Test
    void ofWhatWasCutOffStay() {
        byte[] frame = Crafted.ipv4(new Random(5), Crafted.TCP, 0, 0, 30);
        try (Frames frames = new Frames(1)) {
            frames.put(0, frame, 60, Frames.Offsets.of(frame));
            Packet packet = frames.packet();
            int before = packet.tcp().checksum();
            packet.fixChecksums();
            assertEquals(before, packet.tcp().checksum());
            packet.ipv4().source(7);
            packet.write(0, frame, 0, 0);
            assertEquals(
                    Checksum.update32(before, (int) u32(frame, 26), 7), packet.tcp().checksum());
        }
    }

    private static long u32(byte[] frame, int at) {
        return java.nio.ByteBuffer.wrap(frame).getInt(at) & 0xFFFF_FFFFL;
    }
}
