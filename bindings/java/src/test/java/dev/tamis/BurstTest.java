package dev.tamis;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.util.Random;
import java.util.logging.Level;
import java.util.logging.Logger;

/** Bursts with handlers that answer, throw or answer nothing: each packet gets its verdict. */
class BurstTest {
    private static final int PASS = 0;
    private static final int DROP = 1;
    private static final int BACK = 2;
    private static final int ERROR = 3;
    private static final Logger LOG = Logger.getLogger("dev.tamis");

    private final Frames frames = new Frames(300);
    private final Failures failures = new Failures(0);
    private final Burst burst = new Burst(frames.descriptors(), failures);

    /** A handler that takes bursts; it is not asked for packets. */
    private interface OfBursts extends Handler {
        @Override
        void burst(Burst burst);

        @Override
        default Verdict packet(Packet packet) {
            throw new AssertionError("not asked");
        }
    }

    @BeforeEach
    void fill() {
        LOG.setLevel(Level.OFF);
        byte[] frame = Crafted.ipv4(new Random(1), Crafted.UDP, 0, 0, 4);
        for (int i = 0; i < frames.count(); i++) {
            frames.put(i, frame);
        }
    }

    @AfterEach
    void free() {
        LOG.setLevel(null);
        frames.close();
    }

    private int[] verdicts(int n) {
        int[] verdicts = new int[n];
        for (int i = 0; i < n; i++) {
            verdicts[i] = frames.verdict(i);
        }
        return verdicts;
    }

    @Test
    void verdictsAreTheHandlers() {
        burst.deliver(packet -> Verdict.values()[(int) packet.number()], 3);
        assertArrayEquals(new int[] {PASS, DROP, BACK}, verdicts(3));
        assertEquals(0, failures.packets());
    }

    /** What another thread gets of something while the handler has it. */
    private static Throwable elsewhere(Runnable access) {
        Throwable[] thrown = new Throwable[1];
        Thread thread =
                new Thread(
                        () -> {
                            try {
                                access.run();
                            } catch (Throwable t) {
                                thrown[0] = t;
                            }
                        });
        thread.start();
        try {
            thread.join();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
        return thrown[0];
    }

    @Test
    void aPacketIsItsThreadsAlone() {
        OfBursts handler =
                all -> {
                    Packet packet = all.packet(0);
                    Ipv4 ipv4 = packet.ipv4();
                    Runnable[] accesses = {
                        () -> packet.u8(0),
                        () -> packet.u8(0, 1),
                        packet::copy,
                        packet::length,
                        packet::time,
                        packet::ipv4,
                        packet::isTcp,
                        () -> packet.trim(1),
                        packet::fixChecksums,
                        () -> packet.verdict(Verdict.DROP),
                        () -> all.packet(1),
                        ipv4::ttl,
                        () -> ipv4.ttl(1),
                    };
                    for (int i = 0; i < accesses.length; i++) {
                        Throwable thrown = elsewhere(accesses[i]);
                        assertEquals(StalePacketException.class, thrown.getClass(), "access " + i);
                    }
                    packet.verdict(Verdict.BACK);
                };
        burst.deliver(handler, 2);
        assertArrayEquals(new int[] {BACK, PASS}, verdicts(2));
        assertEquals(0, failures.packets());
    }

    @Test
    void aPacketThatIsFailedCostsNoOther() {
        burst.deliver(
                packet -> {
                    if (packet.number() == 1) {
                        throw new IllegalStateException("a bug");
                    }
                    return packet.number() == 2 ? null : Verdict.DROP;
                },
                4);
        assertArrayEquals(new int[] {DROP, ERROR, ERROR, DROP}, verdicts(4));
        assertEquals(2, failures.packets());
    }

    /** Errors of the JVM are caught as well: the worker goes on. */
    @Test
    void aHandlerWithoutAnEndFailsItsPacket() {
        class Deep implements Handler {
            @Override
            public Verdict packet(Packet packet) {
                return packet.number() == 0 ? packet(packet) : Verdict.DROP;
            }
        }

        burst.deliver(new Deep(), 2);
        assertArrayEquals(new int[] {ERROR, DROP}, verdicts(2));
    }

    /**
     * Packets that a burst's handler has judged keep their verdict, also where it goes through them
     * twice.
     */
    @Test
    void aBurstThatIsFailedKeepsItsVerdicts() {
        burst.deliver(
                (OfBursts)
                        all -> {
                            for (int i = 0; i < 280; i++) {
                                all.packet(i).verdict(i % 2 == 0 ? Verdict.PASS : Verdict.BACK);
                            }
                            all.packet(0);
                            throw new IllegalStateException("a bug");
                        },
                300);
        for (int i = 0; i < 300; i++) {
            assertEquals(
                    i >= 280 ? ERROR : i % 2 == 0 ? PASS : BACK, frames.verdict(i), "packet " + i);
        }
        assertEquals(20, failures.packets());
        burst.deliver(
                (OfBursts)
                        all -> {
                            throw new IllegalStateException("another bug");
                        },
                1);
        assertEquals(ERROR, frames.verdict(0), "what was judged in the burst before is forgotten");
    }

    @Test
    void packetsWithoutAVerdictPass() {
        burst.deliver((OfBursts) all -> all.packet(1).verdict(Verdict.DROP), 3);
        assertArrayEquals(new int[] {PASS, DROP, PASS}, verdicts(3));
    }

    /**
     * What {@code packet} has said of a packet outlives what the rest of {@code burst} throws,
     * unless it was to pass.
     */
    @Test
    void dropsOutliveWhatIsThrownAfterwards() {
        class Counting implements Handler {
            @Override
            public void burst(Burst all) throws Exception {
                Handler.super.burst(all);
                throw new IllegalStateException("a bug");
            }

            @Override
            public Verdict packet(Packet packet) {
                return packet.number() == 0 ? Verdict.DROP : Verdict.PASS;
            }
        }

        burst.deliver(new Counting(), 2);
        assertArrayEquals(new int[] {DROP, ERROR}, verdicts(2));
    }

    @Test
    void aPacketThatIsKeptIsStale() {
        Packet[] kept = new Packet[1];
        burst.deliver(
                packet -> {
                    kept[0] = packet;
                    return Verdict.PASS;
                },
                1);
        assertThrows(StalePacketException.class, () -> kept[0].u8(0));
        assertThrows(StalePacketException.class, () -> kept[0].verdict(Verdict.DROP));
    }
}
