package dev.tamis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.sun.management.ThreadMXBean;

import org.junit.jupiter.api.Test;

import java.lang.management.ManagementFactory;
import java.util.Random;

/** A million packets through a handler that reads and writes headers: not one byte of heap. */
class AllocationTest {
    private static final int BURST = 32;
    private static final int PACKETS = 1_000_000;

    /** A filter, a translation, a hop, and one packet in eight that is longer afterwards. */
    private static Verdict forward(Packet packet) {
        if (!packet.isEthernet() || !packet.isIpv4()) {
            return packet.isIpv6() && packet.ipv6().hopLimit() > 0 ? Verdict.BACK : Verdict.DROP;
        }
        Ipv4 ipv4 = packet.ipv4();
        ipv4.source(0x0A00_0001L).ttl(ipv4.ttl() | 1);
        if (packet.isUdp()) {
            packet.udp().sourcePort(packet.udp().sourcePort() ^ 1);
        } else if (packet.isTcp()) {
            packet.tcp().window(packet.tcp().window() ^ 1).option(2);
        }
        if ((packet.number() & 7) == 0) {
            packet.prepend(4);
            packet.trimFront(4);
        }
        return Verdict.PASS;
    }

    @Test
    void noneForAMillionPackets() {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        assumeTrue(
                threads.isThreadAllocatedMemorySupported(),
                "SKIPPED: this JVM does not count what threads allocate");
        Random random = new Random(7);
        int[] protocols = {Crafted.TCP, Crafted.UDP, Crafted.ICMP};
        try (Frames frames = new Frames(BURST)) {
            for (int i = 0; i < BURST; i++) {
                int protocol = protocols[i % 3];
                frames.put(
                        i,
                        i % 4 == 0
                                ? Crafted.ipv6(random, protocol, 20)
                                : Crafted.ipv4(random, protocol, i % 2, 0, 20));
            }
            Burst burst = new Burst(frames.descriptors(), new Failures(0));
            Handler handler = AllocationTest::forward;
            pass(burst, handler);
            long before = threads.getCurrentThreadAllocatedBytes();
            long nothing = threads.getCurrentThreadAllocatedBytes() - before;
            before = threads.getCurrentThreadAllocatedBytes();
            pass(burst, handler);
            assertEquals(nothing, threads.getCurrentThreadAllocatedBytes() - before, "bytes");
        }
    }

    private static void pass(Burst burst, Handler handler) {
        for (int i = 0; i < PACKETS / BURST; i++) {
            burst.deliver(handler, BURST);
        }
    }
}
