package dev.tamis;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.Consumer;

/** What a packet has, what it has not, and for how long. */
class BoundsTest {
    private static final Random RANDOM = new Random(4);
    private static final byte[] TCP = Crafted.ipv4(RANDOM, Crafted.TCP, 1, 0, 6);

    private static void bounds(Packet packet, Consumer<Packet> access) {
        assertThrows(PacketBoundsException.class, () -> access.accept(packet));
    }

    @Test
    void bytesEndWhereThePacketEnds() {
        try (Frames frames = new Frames(1)) {
            frames.put(0, TCP);
            Packet packet = frames.packet();
            int end = TCP.length;
            assertEquals(TCP[end - 1] & 0xFF, packet.u8(end - 1));
            assertEquals(
                    packet.u16(end - 4) << 16 | packet.u16(end - 2), (int) packet.u32(end - 4));
            for (int at : new int[] {-1, end, Integer.MIN_VALUE, Integer.MAX_VALUE}) {
                bounds(packet, p -> p.u8(at));
                bounds(packet, p -> p.u8(at, 0));
                bounds(packet, p -> p.read(at, new byte[1], 0, 1));
                bounds(packet, p -> p.write(at, new byte[1], 0, 1));
            }
            bounds(packet, p -> p.u16(end - 1));
            bounds(packet, p -> p.u32(end - 3));
            bounds(packet, p -> p.u64(end - 7));
            bounds(packet, p -> p.u64(end - 7, 0));
            bounds(packet, p -> p.read(0, new byte[end + 1], 0, end + 1));
            assertThrows(IndexOutOfBoundsException.class, () -> packet.read(0, new byte[2], 1, 2));
            assertArrayEquals(TCP, frames.get(0));
            assertArrayEquals(TCP, packet.copy());
        }
    }

    /** A header is there if all of it is, at every length that a capture may cut. */
    @Test
    void aHeaderThatIsCutOffIsNotThere() {
        try (Frames frames = new Frames(1)) {
            for (int length = 0; length <= TCP.length; length++) {
                frames.put(0, TCP, length, Frames.Offsets.of(TCP));
                Packet packet = frames.packet();
                List<Boolean> has =
                        List.of(
                                packet.isEthernet(),
                                packet.vlans() == 1,
                                packet.isIpv4(),
                                packet.isTcp());
                assertEquals(
                        List.of(length >= 14, length >= 18, length >= 38, length >= 58),
                        has,
                        "" + length);
                List<Consumer<Packet>> views =
                        List.of(Packet::ethernet, p -> p.vlan(0), Packet::ipv4, Packet::tcp);
                for (int i = 0; i < views.size(); i++) {
                    if (has.get(i)) {
                        views.get(i).accept(packet);
                    } else {
                        bounds(packet, views.get(i));
                    }
                }
                assertFalse(packet.isUdp() || packet.isIcmp() || packet.isIpv6() || packet.isArp());
                assertEquals(TCP.length, packet.wireLength());
            }
        }
    }

    @Test
    void fragmentsButTheFirstHaveNoTransportHeader() {
        byte[] later = TCP.clone();
        later[18 + 7] = 3;
        try (Frames frames = new Frames(1)) {
            frames.put(0, later);
            Packet packet = frames.packet();
            assertTrue(packet.isFragment() && !packet.isFirstFragment() && !packet.isTcp());
            assertEquals(24, packet.ipv4().fragmentOffset());
            bounds(packet, Packet::tcp);
        }
    }

    @Test
    void afterTheBurstEachAccessIsStale() {
        try (Frames frames = new Frames(2)) {
            frames.put(0, TCP);
            frames.put(1, TCP);
            Burst burst = new Burst(frames.descriptors(), new Failures(0)).begin(2);
            Packet packet = burst.packet(0);
            Ipv4 ipv4 = packet.ipv4();
            Tcp tcp = packet.tcp();
            assertEquals(ipv4.ttl(), packet.u8(26));
            burst.packet(1);
            assertThrows(StalePacketException.class, ipv4::ttl);
            assertThrows(StalePacketException.class, () -> tcp.sourcePort(1));
            Tcp second = packet.tcp();
            burst.end();
            List<Runnable> accesses =
                    List.of(
                            second::sequence,
                            () -> second.window(1),
                            second::offset,
                            packet::length,
                            packet::ipv4,
                            packet::copy,
                            () -> packet.u8(0),
                            () -> packet.u16(0, 1),
                            packet::time,
                            packet::isTcp,
                            () -> packet.trim(1),
                            () -> packet.prepend(1),
                            () -> packet.verdict(Verdict.DROP),
                            packet::fixChecksums);
            for (Runnable access : accesses) {
                assertThrows(StalePacketException.class, access::run);
            }
            assertThrows(IndexOutOfBoundsException.class, () -> burst.packet(0));
            assertArrayEquals(TCP, frames.get(0));
        }
    }

    @Test
    void aPacketThatIsTrimmedAndGrownKeepsItsBytes() {
        try (Frames frames = new Frames(1)) {
            frames.put(0, TCP);
            Packet packet = frames.packet();
            Ipv4 before = packet.ipv4();
            packet.trim(6);
            packet.trimFront(4);
            assertThrows(StalePacketException.class, before::ttl);
            assertEquals(
                    List.of(14, 34), List.of(packet.networkOffset(), packet.transportOffset()));
            packet.prepend(10);
            packet.append(3);
            byte[] expected = new byte[TCP.length + 3];
            System.arraycopy(TCP, 4, expected, 10, TCP.length - 10);
            assertArrayEquals(expected, frames.get(0));
            assertEquals(
                    List.of(Frames.ROOM - 6, 24, 44),
                    List.of(packet.headroom(), packet.networkOffset(), packet.transportOffset()));
            assertEquals(TCP[18 + 8] & 0xFF, packet.ipv4().ttl());
            packet.trimFront(27);
            assertEquals(
                    List.of(-1, 17), List.of(packet.networkOffset(), packet.transportOffset()));
            assertFalse(packet.isIpv4());
        }
    }

    @Test
    void roomIsNotExceeded() {
        try (Frames frames = new Frames(1)) {
            frames.put(0, TCP);
            Packet packet = frames.packet();
            int tail = packet.tailroom();
            bounds(packet, p -> p.prepend(Frames.ROOM + 1));
            bounds(packet, p -> p.append(tail + 1));
            bounds(packet, p -> p.trim(TCP.length + 1));
            bounds(packet, p -> p.trimFront(TCP.length + 1));
            for (Consumer<Packet> negative :
                    List.<Consumer<Packet>>of(
                            p -> p.prepend(-1),
                            p -> p.append(-1),
                            p -> p.trim(-1),
                            p -> p.trimFront(-1))) {
                bounds(packet, negative);
            }
            assertArrayEquals(TCP, frames.get(0));
            packet.prepend(Frames.ROOM);
            packet.append(tail);
            assertEquals(List.of(0, 0), List.of(packet.headroom(), packet.tailroom()));
            packet.trim(packet.length());
            assertEquals(0, packet.length());
            assertFalse(packet.isEthernet() || packet.isIpv4() || packet.isTcp());
        }
    }

    @Test
    void optionsOfTcpAreFoundAndBroken() {
        byte[] options = {1, 1, 8, 4, 7, 7, 2, 4, 5, (byte) 0xB4, 0, 0};
        byte[] frame =
                Arrays.copyOf(Crafted.ipv4(RANDOM, Crafted.TCP, 0, 0, 0), 54 + options.length);
        System.arraycopy(options, 0, frame, 54, options.length);
        frame[46] = (byte) 0x80;
        try (Frames frames = new Frames(1)) {
            frames.put(0, frame);
            Packet packet = frames.packet();
            Tcp tcp = packet.tcp();
            assertEquals(List.of(56, 60, -1), List.of(tcp.option(8), tcp.option(2), tcp.option(3)));
            packet.u8(57, 1);
            assertEquals(-1, tcp.option(2));
            packet.u8(57, 10);
            assertEquals(56, tcp.option(8), "it ends where the header ends");
            packet.u8(57, 11);
            assertEquals(-1, tcp.option(8), "it would end after the header");
            packet.u8(46, 0x10);
            assertEquals(-1, tcp.option(8));
        }
    }

    @Test
    void arpIsRead() {
        byte[] frame = Crafted.arp(new Random(9));
        try (Frames frames = new Frames(1)) {
            frames.put(0, frame);
            Packet packet = frames.packet();
            assertTrue(packet.isArp() && !packet.isIpv4());
            Arp arp = packet.arp();
            assertEquals(Arp.REQUEST, arp.operation());
            assertEquals(packet.u32(28), arp.sender());
            assertEquals(packet.u32(38), arp.target());
            assertEquals(packet.u64(20) & 0xFFFF_FFFF_FFFFL, arp.senderHardware());
            assertEquals(packet.u64(30) & 0xFFFF_FFFF_FFFFL, arp.targetHardware());
            packet.u8(18, 8);
            bounds(packet, Packet::arp);
        }
    }
}
