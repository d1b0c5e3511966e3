package dev.tamis;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

import java.util.List;
import java.util.Random;
import java.util.function.ObjLongConsumer;
import java.util.function.ToLongFunction;

/**
 * Every setter at the edges of its range: what it writes, and that nothing beside it changes but
 * checksums.
 */
class SettersTest {
    /**
     * A field: where its bits are in the frame, how it is read and written, and the frame that has
     * it.
     */
    record Field(
            String name,
            byte[] frame,
            int bit,
            int bits,
            ToLongFunction<Packet> get,
            ObjLongConsumer<Packet> set) {
        long max() {
            return bits == 64 ? -1 : (1L << bits) - 1;
        }
    }

    private static final Random RANDOM = new Random(21);
    private static final byte[] TCP4 = Crafted.ipv4(RANDOM, Crafted.TCP, 0, 0, 11);
    private static final byte[] UDP4 = Crafted.ipv4(RANDOM, Crafted.UDP, 1, 8, 12);
    private static final byte[] ICMP4 = Crafted.ipv4(RANDOM, Crafted.ICMP, 2, 0, 3);
    private static final byte[] TCP6 = Crafted.ipv6(RANDOM, Crafted.TCP, 9);
    private static final byte[] ICMP6 = Crafted.ipv6(RANDOM, Crafted.ICMPV6, 8);
    private static final int UDP_AT = (14 + 4 + 28) * 8;
    private static final int TCP_AT = (14 + 20) * 8;
    private static final int IP = 14 * 8;
    private static final int ICMP_AT = (14 + 8 + 20) * 8;

    private static final List<Field> FIELDS =
            List.of(
                    new Field(
                            "Ethernet destination",
                            TCP4,
                            0,
                            48,
                            p -> p.ethernet().destination(),
                            (p, v) -> p.ethernet().destination(v)),
                    new Field(
                            "Ethernet source",
                            TCP4,
                            48,
                            48,
                            p -> p.ethernet().source(),
                            (p, v) -> p.ethernet().source(v)),
                    new Field(
                            "Ethernet type",
                            TCP4,
                            96,
                            16,
                            p -> p.ethernet().type(),
                            (p, v) -> p.ethernet().type((int) v)),
                    new Field(
                            "VLAN priority",
                            UDP4,
                            112,
                            3,
                            p -> p.vlan(0).priority(),
                            (p, v) -> p.vlan(0).priority((int) v)),
                    new Field(
                            "VLAN id",
                            UDP4,
                            116,
                            12,
                            p -> p.vlan(0).id(),
                            (p, v) -> p.vlan(0).id((int) v)),
                    new Field(
                            "VLAN id",
                            ICMP4,
                            148,
                            12,
                            p -> p.vlan(1).id(),
                            (p, v) -> p.vlan(1).id((int) v)),
                    new Field(
                            "IPv4 tos",
                            TCP4,
                            IP + 8,
                            8,
                            p -> p.ipv4().tos(),
                            (p, v) -> p.ipv4().tos((int) v)),
                    new Field(
                            "IPv4 totalLength",
                            TCP4,
                            IP + 16,
                            16,
                            p -> p.ipv4().totalLength(),
                            (p, v) -> p.ipv4().totalLength((int) v)),
                    new Field(
                            "IPv4 identification",
                            TCP4,
                            IP + 32,
                            16,
                            p -> p.ipv4().identification(),
                            (p, v) -> p.ipv4().identification((int) v)),
                    new Field(
                            "IPv4 ttl",
                            TCP4,
                            IP + 64,
                            8,
                            p -> p.ipv4().ttl(),
                            (p, v) -> p.ipv4().ttl((int) v)),
                    new Field(
                            "IPv4 source",
                            TCP4,
                            IP + 96,
                            32,
                            p -> p.ipv4().source(),
                            (p, v) -> p.ipv4().source(v)),
                    new Field(
                            "IPv4 destination",
                            TCP4,
                            IP + 128,
                            32,
                            p -> p.ipv4().destination(),
                            (p, v) -> p.ipv4().destination(v)),
                    new Field(
                            "IPv6 trafficClass",
                            TCP6,
                            IP + 4,
                            8,
                            p -> p.ipv6().trafficClass(),
                            (p, v) -> p.ipv6().trafficClass((int) v)),
                    new Field(
                            "IPv6 flowLabel",
                            TCP6,
                            IP + 12,
                            20,
                            p -> p.ipv6().flowLabel(),
                            (p, v) -> p.ipv6().flowLabel((int) v)),
                    new Field(
                            "IPv6 payloadLength",
                            TCP6,
                            IP + 32,
                            16,
                            p -> p.ipv6().payloadLength(),
                            (p, v) -> p.ipv6().payloadLength((int) v)),
                    new Field(
                            "IPv6 hopLimit",
                            TCP6,
                            IP + 56,
                            8,
                            p -> p.ipv6().hopLimit(),
                            (p, v) -> p.ipv6().hopLimit((int) v)),
                    new Field(
                            "IPv6 source, high",
                            TCP6,
                            IP + 64,
                            64,
                            p -> p.ipv6().sourceHigh(),
                            (p, v) -> p.ipv6().source(v, p.ipv6().sourceLow())),
                    new Field(
                            "IPv6 source, low",
                            TCP6,
                            IP + 128,
                            64,
                            p -> p.ipv6().sourceLow(),
                            (p, v) -> p.ipv6().source(p.ipv6().sourceHigh(), v)),
                    new Field(
                            "IPv6 destination, high",
                            TCP6,
                            IP + 192,
                            64,
                            p -> p.ipv6().destinationHigh(),
                            (p, v) -> p.ipv6().destination(v, p.ipv6().destinationLow())),
                    new Field(
                            "IPv6 destination, low",
                            TCP6,
                            IP + 256,
                            64,
                            p -> p.ipv6().destinationLow(),
                            (p, v) -> p.ipv6().destination(p.ipv6().destinationHigh(), v)),
                    new Field(
                            "TCP sourcePort",
                            TCP4,
                            TCP_AT,
                            16,
                            p -> p.tcp().sourcePort(),
                            (p, v) -> p.tcp().sourcePort((int) v)),
                    new Field(
                            "TCP destinationPort",
                            TCP4,
                            TCP_AT + 16,
                            16,
                            p -> p.tcp().destinationPort(),
                            (p, v) -> p.tcp().destinationPort((int) v)),
                    new Field(
                            "TCP sequence",
                            TCP4,
                            TCP_AT + 32,
                            32,
                            p -> p.tcp().sequence(),
                            (p, v) -> p.tcp().sequence(v)),
                    new Field(
                            "TCP acknowledgment",
                            TCP4,
                            TCP_AT + 64,
                            32,
                            p -> p.tcp().acknowledgment(),
                            (p, v) -> p.tcp().acknowledgment(v)),
                    new Field(
                            "TCP flags",
                            TCP4,
                            TCP_AT + 104,
                            8,
                            p -> p.tcp().flags(),
                            (p, v) -> p.tcp().flags((int) v)),
                    new Field(
                            "TCP window",
                            TCP4,
                            TCP_AT + 112,
                            16,
                            p -> p.tcp().window(),
                            (p, v) -> p.tcp().window((int) v)),
                    new Field(
                            "TCP urgent",
                            TCP4,
                            TCP_AT + 144,
                            16,
                            p -> p.tcp().urgent(),
                            (p, v) -> p.tcp().urgent((int) v)),
                    new Field(
                            "UDP sourcePort",
                            UDP4,
                            UDP_AT,
                            16,
                            p -> p.udp().sourcePort(),
                            (p, v) -> p.udp().sourcePort((int) v)),
                    new Field(
                            "UDP destinationPort",
                            UDP4,
                            UDP_AT + 16,
                            16,
                            p -> p.udp().destinationPort(),
                            (p, v) -> p.udp().destinationPort((int) v)),
                    new Field(
                            "UDP length",
                            UDP4,
                            UDP_AT + 32,
                            16,
                            p -> p.udp().length(),
                            (p, v) -> p.udp().length((int) v)),
                    new Field(
                            "ICMP type",
                            ICMP4,
                            ICMP_AT,
                            8,
                            p -> p.icmp().type(),
                            (p, v) -> p.icmp().type((int) v)),
                    new Field(
                            "ICMP code",
                            ICMP4,
                            ICMP_AT + 8,
                            8,
                            p -> p.icmp().code(),
                            (p, v) -> p.icmp().code((int) v)),
                    new Field(
                            "ICMP identifier",
                            ICMP4,
                            ICMP_AT + 32,
                            16,
                            p -> p.icmp().identifier(),
                            (p, v) -> p.icmp().identifier((int) v)),
                    new Field(
                            "ICMP sequence",
                            ICMP6,
                            (14 + 40 + 6) * 8,
                            16,
                            p -> p.icmp().sequence(),
                            (p, v) -> p.icmp().sequence((int) v)),
                    new Field("u8", TCP4, 8, 8, p -> p.u8(1), (p, v) -> p.u8(1, (int) v)),
                    new Field("u16", TCP4, 24, 16, p -> p.u16(3), (p, v) -> p.u16(3, (int) v)),
                    new Field("u32", TCP4, 40, 32, p -> p.u32(5), (p, v) -> p.u32(5, v)),
                    new Field("u64", TCP4, 56, 64, p -> p.u64(7), (p, v) -> p.u64(7, v)));

    @TestFactory
    List<DynamicTest> everySetterWritesItsFieldAlone() {
        return FIELDS.stream()
                .map(field -> DynamicTest.dynamicTest(field.name(), () -> edges(field)))
                .toList();
    }

    @TestFactory
    List<DynamicTest> everySetterRefusesWhatDoesNotFit() {
        return FIELDS.stream()
                .filter(field -> field.bits() < 64)
                .map(field -> DynamicTest.dynamicTest(field.name(), () -> refused(field)))
                .toList();
    }

    private static void edges(Field field) {
        long[] values = {
            0,
            1,
            field.max() >>> 1,
            field.max() - 1,
            field.max(),
            0x5555_5555_5555_5555L & field.max()
        };
        try (Frames frames = new Frames(1)) {
            for (long value : values) {
                frames.put(0, field.frame());
                Packet packet = frames.packet();
                field.set().accept(packet, value);
                assertEquals(value, read(frames.get(0), field), field.name());
                // The header may be another one now: bytes that are read as its type are not asked
                // again.
                if (!field.name().equals("Ethernet type")) {
                    assertEquals(value, field.get().applyAsLong(packet), field.name());
                }
                assertArrayEquals(
                        others(field.frame(), field), others(frames.get(0), field), field.name());
                assertTrue(frames.guardsHold(0));
            }
        }
    }

    private static void refused(Field field) {
        try (Frames frames = new Frames(1)) {
            long[] values =
                    field.bits() == 32 || field.bits() == 48
                            ? new long[] {field.max() + 1, -1, Long.MAX_VALUE, Long.MIN_VALUE}
                            : new long[] {
                                field.max() + 1, -1, Integer.MAX_VALUE, Integer.MIN_VALUE
                            };
            for (long value : values) {
                frames.put(0, field.frame());
                Packet packet = frames.packet();
                UnsignedRangeException refused =
                        assertThrows(
                                UnsignedRangeException.class,
                                () -> field.set().accept(packet, value));
                assertEquals(
                        List.of(field.name(), value, field.max()),
                        List.of(refused.field(), refused.value(), refused.max()));
                assertArrayEquals(field.frame(), frames.get(0), field.name());
            }
        }
    }

    /** The field's bits, read one by one. */
    private static long read(byte[] frame, Field field) {
        long value = 0;
        for (int bit = field.bit(); bit < field.bit() + field.bits(); bit++) {
            value = value << 1 | frame[bit / 8] >>> 7 - bit % 8 & 1;
        }
        return value;
    }

    /** The frame with zeros for the field and for checksums. */
    private static byte[] others(byte[] frame, Field field) {
        byte[] others = frame.clone();
        for (int bit = field.bit(); bit < field.bit() + field.bits(); bit++) {
            others[bit / 8] &= (byte) ~(0x80 >>> bit % 8);
        }
        Frames.Offsets offsets = Frames.Offsets.of(field.frame());
        if (offsets.etherType() == 0x0800) {
            zero(others, offsets.network() + 10);
        }
        zero(
                others,
                offsets.transport()
                        + switch (offsets.protocol()) {
                            case Crafted.TCP -> 16;
                            case Crafted.UDP -> 6;
                            default -> 2;
                        });
        return others;
    }

    private static void zero(byte[] frame, int at) {
        frame[at] = 0;
        frame[at + 1] = 0;
    }
}
