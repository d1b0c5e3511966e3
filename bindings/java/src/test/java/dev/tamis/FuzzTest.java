package dev.tamis;

import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Random;
import java.util.function.BiConsumer;

/**
 * Any bytes, any length, any offsets that the descriptor may name: an access reads and writes
 * within the packet or throws one of the three exceptions. {@code -Dtamis.fuzz=10000000} is the
 * whole of it.
 */
class FuzzTest {
    private static final List<BiConsumer<Packet, Random>> ACCESSES =
            List.of(
                    (p, r) ->
                            p.ethernet()
                                    .destination(r.nextLong() >>> 15)
                                    .source(r.nextLong() >>> 16)
                                    .type(r.nextInt(1 << 17)),
                    (p, r) ->
                            p.vlan(r.nextInt(4))
                                    .id(r.nextInt(1 << 13))
                                    .priority(r.nextInt(9))
                                    .dropEligible(r.nextBoolean()),
                    (p, r) -> p.arp().sender(),
                    (p, r) ->
                            p.ipv4()
                                    .tos(r.nextInt(257))
                                    .identification(r.nextInt())
                                    .dontFragment(r.nextBoolean()),
                    (p, r) ->
                            p.ipv4()
                                    .source(r.nextLong() >>> 31)
                                    .destination(r.nextLong() >>> 31)
                                    .ttl(r.nextInt(257)),
                    (p, r) -> p.ipv4().totalLength(r.nextInt(1 << 17)),
                    (p, r) ->
                            p.ipv6()
                                    .source(r.nextLong(), r.nextLong())
                                    .destination(r.nextLong(), r.nextLong()),
                    (p, r) ->
                            p.ipv6()
                                    .hopLimit(r.nextInt(257))
                                    .flowLabel(r.nextInt(1 << 21))
                                    .payloadLength(r.nextInt(1 << 17)),
                    (p, r) ->
                            p.tcp()
                                    .sourcePort(r.nextInt(1 << 17))
                                    .sequence(r.nextLong() >>> 31)
                                    .flags(r.nextInt(257)),
                    (p, r) -> p.tcp().option(r.nextInt(10)),
                    (p, r) ->
                            p.udp().destinationPort(r.nextInt(1 << 17)).length(r.nextInt(1 << 17)),
                    (p, r) ->
                            p.icmp()
                                    .type(r.nextInt(257))
                                    .code(r.nextInt(257))
                                    .sequence(r.nextInt(1 << 17)),
                    (p, r) -> p.u8(offset(p, r), r.nextInt(257)),
                    (p, r) -> p.u16(offset(p, r), r.nextInt(1 << 17)),
                    (p, r) -> p.u32(offset(p, r), r.nextLong() >>> 31),
                    (p, r) -> p.u64(offset(p, r), r.nextLong()),
                    (p, r) -> p.u8(offset(p, r)),
                    (p, r) -> p.u64(offset(p, r)),
                    (p, r) -> p.read(offset(p, r), new byte[64], 0, r.nextInt(65)),
                    (p, r) -> p.write(offset(p, r), new byte[64], 0, r.nextInt(65)),
                    (p, r) -> p.fixChecksums(),
                    (p, r) -> p.copy(),
                    (p, r) -> p.trim(r.nextInt(20) - 2),
                    (p, r) -> p.trimFront(r.nextInt(20) - 2),
                    (p, r) -> p.prepend(r.nextInt(20) - 2),
                    (p, r) -> p.append(r.nextInt(20) - 2));

    private static int offset(Packet packet, Random random) {
        return random.nextInt(8) == 0 ? random.nextInt() : random.nextInt(packet.length() + 16) - 8;
    }

    private static Frames.Offsets offsets(Random random) {
        int[] protocols = {1, 6, 17, 33, 58, 136, 255, random.nextInt(256)};
        int[] types = {0x0800, 0x86DD, 0x0806, random.nextInt(1 << 16)};
        return new Frames.Offsets(
                header(random),
                header(random),
                types[random.nextInt(4)],
                protocols[random.nextInt(8)],
                random.nextInt(16));
    }

    private static int header(Random random) {
        return random.nextInt(4) == 0 ? random.nextInt(1 << 16) : random.nextInt(90);
    }

    /** Random bytes, in which headers of both versions of IP, tags and lengths are likely. */
    private static byte[] frame(Random random, Frames.Offsets offsets) {
        byte[] frame = new byte[random.nextInt(160)];
        random.nextBytes(frame);
        if (offsets.network() < frame.length) {
            frame[offsets.network()] =
                    (byte) ((random.nextBoolean() ? 0x40 : 0x60) | random.nextInt(16));
        }
        if (offsets.network() + 5 < frame.length && random.nextBoolean()) {
            frame[offsets.network() + 2] = 0;
            frame[offsets.network() + 4] = 0;
        }
        for (int at = 12; at + 1 < frame.length && random.nextInt(3) == 0; at += 4) {
            frame[at] = (byte) 0x81;
            frame[at + 1] = 0;
        }
        return frame;
    }

    @Test
    void anyAccessIsWithinThePacketOrThrows() {
        long packets = Long.getLong("tamis.fuzz", 200_000);
        Random random = new Random(10_000_000);
        int[] thrown = new int[4];
        try (Frames frames = new Frames(1)) {
            Burst burst = new Burst(frames.descriptors(), new Failures(0));
            for (long round = 0; round < packets; round++) {
                Frames.Offsets offsets = offsets(random);
                byte[] frame = frame(random, offsets);
                frames.put(0, frame, random.nextInt(frame.length + 1), offsets);
                Packet packet = burst.begin(1).packet(0);
                int begin = frames.begin(0);
                int end = frames.end(0);
                for (int i = 0; i < 4; i++) {
                    thrown[one(packet, random)]++;
                    begin = Math.min(begin, frames.begin(0));
                    end = Math.max(end, frames.end(0));
                }
                burst.end();
                thrown[one(packet, random)]++;
                assertTrue(frames.guardsHold(0, begin, end), "round " + round);
            }
        }
        for (int kind = 0; kind < thrown.length; kind++) {
            assertTrue(thrown[kind] > packets / 100, "too few of " + kind + ": " + thrown[kind]);
        }
    }

    /** Which exception it throws, or 0 for none. */
    private static int one(Packet packet, Random random) {
        try {
            ACCESSES.get(random.nextInt(ACCESSES.size())).accept(packet, random);
            return 0;
        } catch (PacketBoundsException e) {
            return 1;
        } catch (UnsignedRangeException e) {
            return 2;
        } catch (StalePacketException e) {
            return 3;
        }
    }
}
