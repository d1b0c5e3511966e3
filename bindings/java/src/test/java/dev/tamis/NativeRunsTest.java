package dev.tamis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** Runs by way of the natives alone: several workers, ends, what is asked of them, what they refuse. */
@ExtendWith(NeedsLibrary.class)
class NativeRunsTest {
    /** A run that nothing comes to. */
    static final String LOOPBACK = """
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
            """;

    private static final String ALL = "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n";

    @TempDir
    Path folder;

    @BeforeAll
    static void load() {
        NativeLibrary.load();
    }

    @BeforeEach
    void rules() throws IOException {
        Files.writeString(folder.resolve("rules.v4"), ALL);
    }

    private String captures(String more) {
        return """
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
                """.formatted(LiveTest.OFFICE) + more;
    }

    private long start(String toml) {
        long run = Native.open(toml, folder.toString());
        Native.start(run);
        return run;
    }

    /** Polls every worker of a run in a thread of its own until all have ended: how many frames each was shown. */
    private static List<AtomicLong> pollAll(long run, int workers) throws InterruptedException {
        List<AtomicLong> shown = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < workers; number++) {
            long worker = Native.worker(run, number);
            AtomicLong frames = new AtomicLong();
            shown.add(frames);
            threads.add(new Thread(() -> {
                for (int n = Native.poll(worker, 1_000_000); n >= 0; n = Native.poll(worker, 1_000_000)) {
                    frames.addAndGet(n);
                }
            }));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        return shown;
    }

    private List<String> out() throws IOException {
        return sorted(Captures.frames(folder.resolve("out.pcapng")));
    }

    private static List<String> sorted(List<byte[]> frames) {
        return frames.stream().map(Arrays::toString).sorted().toList();
    }

    @Test
    void twoWorkersShareTheFramesOfACapture() throws Exception {
        long run = Native.open(captures("[workers]\ncount = 2\n"), folder.toString());
        assertEquals(2, Native.start(run));
        List<AtomicLong> shown = pollAll(run, 2);
        Status status = Status.of(Native.await(run, Long.MAX_VALUE));
        Native.closeRun(run);
        long frames = Captures.frames(LiveTest.OFFICE).size();
        assertEquals(frames, shown.get(0).get() + shown.get(1).get());
        assertTrue(shown.get(0).get() > 0 && shown.get(1).get() > 0, shown.toString());
        assertEquals(frames, status.wires().get(0).sent());
        assertEquals(sorted(Captures.frames(LiveTest.OFFICE)), out());
    }

    @Test
    void aWorkerThatIsGivenUpEndsTheRunAndItsFramesAreCounted() {
        long run = start(captures(""));
        long worker = Native.worker(run, 0);
        int frames = 0;
        while (frames == 0) {
            frames = Native.poll(worker, 1_000_000);
        }
        Native.closeWorker(worker);
        TamisException failed = assertThrows(TamisException.class, () -> Native.await(run, Long.MAX_VALUE));
        assertTrue(failed.getMessage().startsWith("worker 0 was given up"), failed.getMessage());
        Status.Direction right = Status.of(Native.status(run)).wires().get(0);
        long dropped = right.dropped().values().stream().mapToLong(Long::longValue).sum();
        assertEquals(right.received() + right.made(), right.sent() + dropped);
        assertTrue(dropped >= frames, right.toString());
        Native.closeRun(run);
    }

    @Test
    void aHandlerThatTamisIsToStartAJvmForIsRefusedHere() {
        String java = LOOPBACK + "[middlebox]\nkind = \"java\"\njar = \"a.jar\"\nclass = \"A\"\n";
        TamisException refused =
                assertThrows(TamisException.class, () -> Native.open(java, folder.toString()));
        assertEquals(
                folder.resolve("tamis.toml")
                        + ":12:8: expected no kind: the program that opens this run has its middlebox",
                refused.getMessage());
    }

    @Test
    void aRunWhoseWorkersNobodyAskedForCanBeClosed() {
        Native.closeRun(start(LOOPBACK));
        Native.closeRun(Native.open(LOOPBACK, folder.toString()));
    }

    @Test
    void aRunThatIsStoppedWakesWhoPolls() throws Exception {
        long run = start(LOOPBACK);
        long worker = Native.worker(run, 0);
        int[] last = {0};
        Thread thread = new Thread(() -> last[0] = Native.poll(worker, Long.MAX_VALUE));
        thread.start();
        assertNull(Native.await(run, 1_000_000));
        Native.stop(run);
        thread.join();
        assertEquals(-1, last[0]);
        assertEquals(-1, Native.poll(worker, Long.MAX_VALUE));
        assertNotEquals(null, Native.await(run, Long.MAX_VALUE));
        Native.closeRun(run);
    }

    /** Who asks in the process is answered as who asks by the control socket. */
    @Test
    void requestsAreThoseOfTheControlSocket() throws Exception {
        Path socket = folder.resolve("control.sock");
        long run = start(LOOPBACK + "[control]\nsocket = \"control.sock\"\n[conntrack]\nmax = 64\n");
        long worker = Native.worker(run, 0);
        Thread polling = new Thread(() -> {
            while (Native.poll(worker, 1_000_000) >= 0) {
                Thread.onSpinWait();
            }
        });
        polling.start();
        Native.request(run, "{\"command\":\"apply\",\"text\":\"*filter\\n:FORWARD DROP [0:0]\\n-A FORWARD -p udp -j ACCEPT\\nCOMMIT\\n\"}");
        Native.request(run, "{\"command\":\"bans\",\"text\":\"192.0.2.7\",\"action\":\"ban\"}");
        List<String> lines = List.of(
                "{\"command\":\"get\"}",
                "{\"command\":\"log\"}",
                "{\"command\":\"counters\",\"save\":true}",
                "{\"command\":\"counters\"}",
                "{\"command\":\"bans\",\"text\":\"192.0.2.7\",\"action\":\"ban\"}",
                "{\"command\":\"bans\",\"text\":\"nonsense\",\"action\":\"ban\"}",
                "{\"command\":\"apply\",\"text\":\"*filter\\nnonsense\\n\"}",
                "{\"command\":\"apply\",\"text\":\"*filter\\nCOMMIT\\n\",\"if_rev\":99}",
                "{\"command\":\"conntrack_list\",\"flows\":{},\"most\":20}",
                "{\"command\":\"rollback\",\"revision\":99}",
                "{\"command\":\"nonsense\"}",
                "nonsense");
        for (String line : lines) {
            assertEquals(asked(socket, line), Native.request(run, line), line);
        }
        assertTrue(Native.request(run, lines.get(0)).contains("-A FORWARD -p udp -j ACCEPT"));
        Native.request(run, "{\"command\":\"stop\"}");
        polling.join();
        Native.closeRun(run);
    }

    private static String asked(Path socket, String line) throws IOException {
        try (SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX)) {
            channel.connect(UnixDomainSocketAddress.of(socket));
            channel.write(ByteBuffer.wrap((line + "\n").getBytes(StandardCharsets.UTF_8)));
            ByteBuffer answer = ByteBuffer.allocate(1 << 20);
            while (channel.read(answer) >= 0) {
                assertTrue(answer.hasRemaining());
            }
            return new String(answer.array(), 0, answer.position(), StandardCharsets.UTF_8).stripTrailing();
        }
    }

    @Test
    void whatIsRefusedIsSaidAsTheCommandLineSaysIt() throws IOException {
        String file = folder + "/tamis.toml";
        assertEquals(
                file + ":12:1: expected one of cores count scheme, found \"cuont\"",
                message(() -> Native.open(LOOPBACK + "[workers]\ncuont = 2\n", folder.toString())));
        Files.writeString(folder.resolve("rules.v4"), "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -j ACEPT\nCOMMIT\n");
        assertEquals(
                file + ":10:6: " + folder + "/rules.v4:3:15: expected a chain of table filter or a target, found \"ACEPT\" (is it ACCEPT?)",
                message(() -> start(LOOPBACK)));
        Files.writeString(folder.resolve("rules.v4"), ALL);
        String lost = captures("").replace("office.pcap", "lost.pcap");
        Path named = LiveTest.OFFICE.resolveSibling("lost.pcap");
        assertEquals(file + ":4:8: " + named + ": No such file or directory", message(() -> start(lost)));
    }

    private static String message(Runnable refused) {
        return assertThrows(TamisException.class, refused::run).getMessage();
    }

    @Test
    void theProcessorsAreThoseOfThisProcessAndThreadsPinThemselves() throws Exception {
        List<Topology.Processor> all = Topology.of(Native.topology()).processors();
        int last = all.get(all.size() - 1).number();
        List<Topology.Processor> pinned = new ArrayList<>();
        Thread thread = new Thread(() -> {
            Native.pin(last);
            pinned.addAll(Topology.of(Native.topology()).processors());
        });
        thread.start();
        thread.join();
        assertEquals(List.of(last), pinned.stream().map(Topology.Processor::number).toList());
        assertEquals(all, Topology.of(Native.topology()).processors());
    }
}
