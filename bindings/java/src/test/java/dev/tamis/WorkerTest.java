package dev.tamis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;
import java.util.Random;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** A worker's life, with a poller that has a script. */
class WorkerTest {
    private final List<String> happened = new ArrayList<>();

    /** That of the worker which was made last. */
    private Dispatch dispatch;

    /** Polls that answer these numbers, and then the end. */
    private final class Script implements Poller {
        private final Frames frames = new Frames(8);
        private final int[] answers;
        private int next;

        Script(int... answers) {
            this.answers = answers;
        }

        @Override
        public long descriptors() {
            return frames.descriptors();
        }

        @Override
        public int poll(long timeoutNanos) {
            int answer = next < answers.length ? answers[next++] : -1;
            byte[] frame = Crafted.ipv4(new Random(1), Crafted.UDP, 0, 0, 4);
            for (int i = 0; i < answer; i++) {
                frames.put(i, frame);
            }
            happened.add("poll " + answer);
            return answer;
        }

        @Override
        public void close() {
            frames.close();
            happened.add("give up");
        }
    }

    /** Writes down what it is called for. */
    private class Recorder implements dev.tamis.Handler {
        @Override
        public void init(Context context) throws Exception {
            happened.add("init " + context.worker() + " of " + context.workers());
        }

        @Override
        public Verdict packet(Packet packet) throws Exception {
            happened.add("packet " + packet.number());
            return Verdict.PASS;
        }

        @Override
        public void idle(long now) throws Exception {
            happened.add("idle");
        }

        @Override
        public void close() throws Exception {
            happened.add("close");
        }
    }

    private Worker worker(Poller poller, dev.tamis.Handler handler) {
        dispatch = new Dispatch(handler, new Context(1, 2, null));
        return new Worker(poller, dispatch, OptionalInt.empty(), 1);
    }

    /** What is logged while it runs. */
    private static List<LogRecord> logged(Runnable what) {
        List<LogRecord> records = new ArrayList<>();
        Handler log =
                new Handler() {
                    @Override
                    public void publish(LogRecord record) {
                        records.add(record);
                    }

                    @Override
                    public void flush() {}

                    @Override
                    public void close() {}
                };
        Logger logger = Logger.getLogger("dev.tamis");
        logger.addHandler(log);
        logger.setUseParentHandlers(false);
        try {
            what.run();
        } finally {
            logger.removeHandler(log);
            logger.setUseParentHandlers(true);
        }
        return records;
    }

    @Test
    void itPollsUntilTheEnd() {
        Worker worker = worker(new Script(2, 0, 1), new Recorder());
        worker.run();
        assertEquals(
                List.of(
                        "init 1 of 2",
                        "poll 2",
                        "packet 0",
                        "packet 1",
                        "poll 0",
                        "idle",
                        "poll 1",
                        "packet 0",
                        "poll -1",
                        "give up",
                        "close"),
                happened);
        assertNull(dispatch.cause());
    }

    @Test
    void whatInitThrowsEndsIt() {
        Exception thrown = new Exception("no such table");
        Worker worker =
                worker(
                        new Script(2),
                        new Recorder() {
                            @Override
                            public void init(Context context) throws Exception {
                                throw thrown;
                            }
                        });
        List<LogRecord> records = logged(worker);
        assertEquals(List.of("give up", "close"), happened);
        assertSame(thrown, dispatch.cause());
        assertEquals(1, records.size());
    }

    /** A million exceptions are a few lines, and all of their packets are counted. */
    @Test
    void whatPacketsThrowIsCountedAndToldOnce() {
        int[] polls = new int[1000];
        java.util.Arrays.fill(polls, 8);
        Worker worker =
                worker(
                        new Script(polls),
                        new Recorder() {
                            @Override
                            public Verdict packet(Packet packet) throws Exception {
                                throw new Exception("a bug");
                            }

                            @Override
                            public void close() throws Exception {
                                throw new Exception("another bug");
                            }
                        });
        List<LogRecord> records = logged(worker);
        assertNull(dispatch.cause());
        assertEquals(8000, dispatch.failed());
        LogRecord first = records.get(0);
        assertEquals("a bug", first.getThrown().getMessage());
        assertEquals(
                "worker 1: the handler has failed 1 packets: java.lang.Exception: a bug",
                first.getMessage());
        assertTrue(records.size() < 100, records.size() + " lines");
        assertEquals("another bug", records.get(records.size() - 1).getThrown().getMessage());
    }

    @Test
    void whatIdleThrowsIsTold() {
        Worker worker =
                worker(
                        new Script(0, 0),
                        new Recorder() {
                            @Override
                            public void idle(long now) throws Exception {
                                throw new Exception("a bug");
                            }
                        });
        assertEquals(1, logged(worker).size());
        assertEquals(0, dispatch.failed());
        assertNull(dispatch.cause());
    }
}
