package dev.tamis;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Runs with handlers in Java, from a capture to a capture: what leaves, and that every frame is
 * accounted for.
 */
@ExtendWith(NeedsLibrary.class)
class LiveTest {
    /** The capture of `tamis demo`. */
    static final Path OFFICE = Path.of("../../crates/replay/demo/office.pcap").toAbsolutePath();

    private static final String ALL = "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n";

    @TempDir Path folder;

    @BeforeEach
    void quiet() {
        Logger.getLogger("dev.tamis").setLevel(Level.OFF);
    }

    @AfterEach
    void loud() {
        Logger.getLogger("dev.tamis").setLevel(null);
    }

    private Config config(String rules, String more) throws IOException {
        Files.writeString(folder.resolve("rules.v4"), rules);
        Path toml = folder.resolve("live.toml");
        Files.writeString(
                toml,
                """
                [[port]]
                name = "left"
                kind = "pcap"
                file = "%s"
                [[port]]
                name = "right"
                kind = "pcap"
                out = "out.pcapng"
                [[wire]]
                ports = ["left", "right"]
                other = "pass"
                [rules]
                ip = "rules.v4"
                """
                                .formatted(OFFICE)
                        + more);
        return Config.of(toml);
    }

    private Status.Direction run(String more, Supplier<Handler> handlers) throws IOException {
        try (Dataplane dataplane = Dataplane.open(config(ALL, more))) {
            Status.Direction right = dataplane.run(handlers).wires().get(0);
            long dropped = right.dropped().values().stream().mapToLong(Long::longValue).sum();
            assertEquals(
                    right.received() + right.made(),
                    right.sent() + dropped,
                    "every frame is accounted for");
            return right;
        }
    }

    private List<byte[]> out() throws IOException {
        return Captures.frames(folder.resolve("out.pcapng"));
    }

    private static boolean isUdp(byte[] frame) {
        return Frames.Offsets.of(frame).protocol() == Crafted.UDP;
    }

    private static void assertFrames(List<byte[]> expected, List<byte[]> found) {
        assertEquals(expected.size(), found.size());
        for (int i = 0; i < expected.size(); i++) {
            assertArrayEquals(expected.get(i), found.get(i), "frame " + i);
        }
    }

    @Test
    void whatPassesLeavesAsItCame() throws IOException {
        AtomicInteger seen = new AtomicInteger();
        Status.Direction right =
                run(
                        "",
                        () ->
                                packet -> {
                                    seen.incrementAndGet();
                                    return Verdict.PASS;
                                });
        List<byte[]> frames = Captures.frames(OFFICE);
        assertEquals(List.of(287L, 287L, 287), List.of(right.received(), right.sent(), seen.get()));
        assertFrames(frames, out());
    }

    @Test
    void whatIsDroppedIsCounted() throws IOException {
        Status.Direction right =
                run("", () -> packet -> packet.isUdp() ? Verdict.DROP : Verdict.PASS);
        List<byte[]> frames = Captures.frames(OFFICE);
        long udp = frames.stream().filter(LiveTest::isUdp).count();
        assertTrue(udp > 0);
        assertEquals(udp, right.dropped("middlebox"));
        assertFrames(frames.stream().filter(frame -> !isUdp(frame)).toList(), out());
    }

    @Test
    void aHandlerHasTheRunThatItIsIn() throws IOException {
        List<Run> given = new ArrayList<>();
        try (Dataplane dataplane = Dataplane.open(config(ALL, ""))) {
            Run run =
                    dataplane.start(
                            () ->
                                    new Handler() {
                                        @Override
                                        public void init(Context context) {
                                            given.add(context.run());
                                        }

                                        @Override
                                        public Verdict packet(Packet packet) {
                                            return Verdict.PASS;
                                        }
                                    });
            run.await();
            assertEquals(List.of(run), given);
        }
    }

    /** A handler that is slow costs a capture nothing: it waits for room in the ring. */
    @Test
    void whatPassesByARingLeavesAsItCame() throws IOException {
        Status.Direction right =
                run(
                        "[middlebox]\nring = 16\n",
                        () ->
                                packet -> {
                                    pause(packet.number() % 100 == 0 ? 10 : 0);
                                    return Verdict.PASS;
                                });
        assertEquals(List.of(287L, 287L), List.of(right.received(), right.sent()));
        assertFrames(Captures.frames(OFFICE), out());
    }

    /** All comes while the handler is blocked, as by a collector: what the ring has room for waits. */
    @Test
    void whatComesInAPauseWaitsInTheRingOrIsCounted() throws Exception {
        for (int room : new int[] {8, 287}) {
            Config config = config(ALL, "[middlebox]\nring = %d\n".formatted(room));
            String paced = config.toml().replace("file =", "pace = \"capture\"\nspeed = 1e6\nfile =");
            CountDownLatch goes = new CountDownLatch(1);
            try (Dataplane dataplane = Dataplane.open(new Config(paced, folder))) {
                Run run =
                        dataplane.start(
                                () ->
                                        packet -> {
                                            await(goes);
                                            return Verdict.PASS;
                                        });
                while (arrived(run.status()) < 287) {
                    pause(1);
                }
                goes.countDown();
                Status last = run.await();
                Status.Direction right = last.wires().get(0);
                assertEquals(287 - room, right.dropped("middlebox_ring"));
                assertEquals(room, right.sent());
                assertEquals(new Status.Ring(room, 0, room), last.workers().get(0).ring());
            }
            assertFrames(Captures.frames(OFFICE).subList(0, room), out());
        }
    }

    /** Frames that are in the ring, or were dropped for want of room there. */
    private static long arrived(Status status) {
        Status.Ring ring = status.workers().get(0).ring();
        return ring.packets() + status.wires().get(0).dropped("middlebox_ring");
    }

    private static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Frames are rewritten, grown and cut where they are, and leave so. */
    @Test
    void whatIsRewrittenLeavesSo() throws IOException {
        run(
                "",
                () ->
                        packet -> {
                            if (packet.isIpv4()) {
                                packet.ipv4().source(Address.ipv4("198.18.0.1"));
                            }
                            packet.prepend(4);
                            packet.u32(0, 0x0102_0304);
                            packet.trim(3);
                            packet.append(2);
                            return Verdict.PASS;
                        });
        List<byte[]> expected = new ArrayList<>();
        for (byte[] frame : Captures.frames(OFFICE)) {
            byte[] changed = frame.clone();
            if (Frames.Offsets.of(frame).etherType() == 0x0800) {
                byte[] source = {(byte) 198, 18, 0, 1};
                System.arraycopy(source, 0, changed, Frames.Offsets.of(frame).network() + 12, 4);
                changed = Crafted.right(changed);
            }
            byte[] grown = new byte[frame.length + 3];
            System.arraycopy(new byte[] {1, 2, 3, 4}, 0, grown, 0, 4);
            System.arraycopy(changed, 0, grown, 4, changed.length - 3);
            expected.add(grown);
        }
        assertFrames(expected, out());
    }

    @Test
    void whatIsFailedIsDroppedOrPassesAsConfigured() throws IOException {
        Supplier<Handler> buggy =
                () ->
                        packet -> {
                            if (packet.isUdp()) {
                                throw new IllegalStateException("a bug");
                            }
                            return Verdict.PASS;
                        };
        List<byte[]> frames = Captures.frames(OFFICE);
        long udp = frames.stream().filter(LiveTest::isUdp).count();
        Status.Direction dropped = run("[middlebox]\non_error = \"drop\"\n", buggy);
        assertEquals(
                List.of(udp, 287 - udp), List.of(dropped.dropped("handler_error"), dropped.sent()));
        Status.Direction passed = run("[middlebox]\non_error = \"pass\"\n", buggy);
        assertEquals(287, passed.sent());
    }

    /** What goes back leaves by the port that it came in by. */
    @Test
    void whatGoesBackIsNoLoss() throws IOException {
        Status.Direction right = run("", () -> packet -> Verdict.BACK);
        assertEquals(List.of(287L, 287L, 0), List.of(right.received(), right.sent(), out().size()));
    }

    @Test
    void aHandlerThatCannotBeginEndsTheRun() throws IOException {
        Exception thrown = new Exception("no such table");
        Handler handler =
                new Handler() {
                    @Override
                    public void init(Context context) throws Exception {
                        throw thrown;
                    }

                    @Override
                    public Verdict packet(Packet packet) {
                        return Verdict.PASS;
                    }
                };
        try (Dataplane dataplane = Dataplane.open(config(ALL, ""))) {
            TamisException ended =
                    assertThrows(TamisException.class, () -> dataplane.run(() -> handler));
            assertSame(thrown, ended.getCause());
        }
    }

    @Test
    void aConfigurationThatIsRefusedSaysWhere() throws IOException {
        Config config = config(ALL, "[middlebox]\nplace = \"beside\"\n");
        String message =
                assertThrows(TamisException.class, () -> Dataplane.open(config)).getMessage();
        assertTrue(
                message.endsWith("live.toml:15:9: expected one of after before, found \"beside\""),
                message);
    }

    /** A run without an end: it is asked, banned from, changed, and stopped. */
    @Test
    void aRunIsAskedAndChangedAndStopped() throws IOException {
        Path toml = folder.resolve("live.toml");
        Files.writeString(folder.resolve("rules.v4"), ALL);
        Files.writeString(
                toml,
                """
                [[port]]
                name = "left"
                kind = "loopback"
                [[port]]
                name = "right"
                kind = "loopback"
                [[wire]]
                ports = ["left", "right"]
                [rules]
                ip = "rules.v4"
                [workers]
                count = 1
                """);
        Run closed;
        try (Dataplane dataplane = Dataplane.open(toml)) {
            AtomicInteger idle = new AtomicInteger();
            Run run =
                    dataplane
                            .idle(Duration.ofMillis(1))
                            .affinity(Affinity.compact())
                            .start(
                                    () ->
                                            new Handler() {
                                                @Override
                                                public void idle(long now) {
                                                    idle.incrementAndGet();
                                                }

                                                @Override
                                                public Verdict packet(Packet packet) {
                                                    return Verdict.PASS;
                                                }
                                            });
            assertNull(run.await(Duration.ofMillis(20)));
            Thread.currentThread().interrupt();
            assertThrows(TamisException.class, run::await);
            assertTrue(Thread.interrupted());
            Rules rules = run.rules();
            rules.ban("192.0.2.7");
            assertEquals(
                    1,
                    rules.apply(
                                    "*filter\n"
                                            + ":FORWARD DROP [0:0]\n"
                                            + "-A FORWARD -p udp -j ACCEPT\n"
                                            + "COMMIT\n")
                            .added());
            assertTrue(rules.text().contains("-A FORWARD -p udp -j ACCEPT"));
            RequestException refused =
                    assertThrows(RequestException.class, () -> rules.apply("*filter\nnonsense\n"));
            assertEquals("text", refused.kind());
            assertEquals(2, run.status().program());
            run.stop();
            assertNotNull(run.await());
            assertTrue(idle.get() > 0);
            closed = run;
        }
        assertThrows(IllegalStateException.class, () -> closed.request("{\"command\":\"get\"}"));
    }
}
