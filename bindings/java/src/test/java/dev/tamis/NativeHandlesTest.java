package dev.tamis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.LongConsumer;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** What the library is handed that it did not give, or not for this: an exception, never a crash. */
@ExtendWith(NeedsLibrary.class)
class NativeHandlesTest {
    private static final List<LongConsumer> RUNS = List.of(
            Native::start,
            run -> Native.worker(run, 0),
            Native::stop,
            Native::status,
            run -> Native.request(run, "{\"command\":\"get\"}"),
            run -> Native.await(run, 0),
            Native::closeRun);
    private static final List<LongConsumer> WORKERS =
            List.of(Native::descriptors, worker -> Native.poll(worker, 0), Native::closeWorker);
    private static final String BUSY = "another thread has this worker";
    private static final long[] NONE = {0, -1, 1, 0x7fff_ffffL, 1L << 32, Long.MAX_VALUE, Long.MIN_VALUE, 0x7f12_3456_7890L};

    @TempDir
    Path folder;

    @BeforeAll
    static void load() {
        NativeLibrary.load();
    }

    @BeforeEach
    void rules() throws Exception {
        Files.writeString(folder.resolve("rules.v4"), "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n");
    }

    private long open() {
        return Native.open(NativeRunsTest.LOOPBACK, folder.toString());
    }

    private static String refused(LongConsumer function, long handle) {
        return assertThrows(TamisException.class, () -> function.accept(handle)).getMessage();
    }

    @Test
    void handlesThatWereNeverGivenAreRefused() {
        for (long none : NONE) {
            RUNS.forEach(function -> assertEquals("this run was closed, or never opened", refused(function, none)));
            WORKERS.forEach(function -> assertEquals("this worker was closed, or never opened", refused(function, none)));
        }
    }

    @Test
    void handlesThatWereTakenBackAreRefusedAlsoWhereOthersAre() {
        long run = open();
        Native.start(run);
        long worker = Native.worker(run, 0);
        Native.closeWorker(worker);
        Native.closeRun(run);
        long next = open();
        assertNotEquals(run, next);
        Native.start(next);
        assertNotEquals(worker, Native.worker(next, 0));
        RUNS.forEach(function -> refused(function, run));
        WORKERS.forEach(function -> refused(function, worker));
        Native.closeRun(next);
    }

    @Test
    void aHandleOfTheOtherKindIsRefused() {
        long run = open();
        Native.start(run);
        long worker = Native.worker(run, 0);
        RUNS.forEach(function -> refused(function, worker));
        WORKERS.forEach(function -> refused(function, run));
        Native.closeRun(run);
        WORKERS.forEach(function -> refused(function, worker));
    }

    @Test
    void callsOutOfTurnAreRefused() {
        long run = open();
        for (LongConsumer early : RUNS.subList(1, RUNS.size() - 1)) {
            assertEquals("expected a run that was started", refused(early, run));
        }
        assertEquals(1, Native.start(run));
        assertEquals("expected a run that was not started yet", refused(Native::start, run));
        assertEquals("expected a worker from 0 to 0, found 1", refused(r -> Native.worker(r, 1), run));
        refused(r -> Native.worker(r, -1), run);
        Native.worker(run, 0);
        assertEquals("worker 0 was given away before", refused(r -> Native.worker(r, 0), run));
        Native.closeRun(run);
    }

    @Test
    void aWorkerIsOneThreadsAtATime() throws Exception {
        long run = open();
        Native.start(run);
        long worker = Native.worker(run, 0);
        Thread thread = new Thread(() -> pollUntilItEnds(worker));
        thread.start();
        // Until the thread polls, which waits for frames that never come, the worker is free.
        while (!BUSY.equals(polled(worker))) {
            Thread.onSpinWait();
        }
        assertEquals(BUSY, refused(Native::closeWorker, worker));
        assertEquals(BUSY, refused(Native::descriptors, worker));
        Native.stop(run);
        thread.join();
        Native.closeRun(run);
    }

    /** Polls without an end to its patience, also where another thread has the worker for a moment. */
    private static void pollUntilItEnds(long worker) {
        while (BUSY.equals(polled(worker, Long.MAX_VALUE))) {
            Thread.onSpinWait();
        }
    }

    private static String polled(long worker) {
        return polled(worker, 0);
    }

    /** Why it could not be polled, or null. */
    private static String polled(long worker, long timeout) {
        try {
            Native.poll(worker, timeout);
            return null;
        } catch (TamisException e) {
            return e.getMessage();
        }
    }

    @Test
    void whatIsNoTextOrNoRoomIsRefused() {
        assertThrows(TamisException.class, () -> Native.open(null, ""));
        assertThrows(TamisException.class, () -> Native.open("", null));
        assertThrows(TamisException.class, () -> Native.layout(null));
        assertThrows(TamisException.class, () -> Native.layout(new long[3]));
        assertThrows(TamisException.class, () -> Native.replay(new String[] {null}, new String[0], ""));
        assertThrows(TamisException.class, () -> Native.replay(null, null, null));
        assertThrows(TamisException.class, () -> Native.pin(-1));
        assertThrows(TamisException.class, () -> Native.pin(Integer.MAX_VALUE));
    }
}
