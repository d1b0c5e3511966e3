package dev.tamis;

import java.util.concurrent.atomic.AtomicLong;

/**
 * What handlers have thrown: counted by packets, and told in the log {@code dev.tamis}, the first
 * one with its stack trace and then at most one a second.
 */
final class Failures {
    private static final System.Logger LOG = System.getLogger("dev.tamis");
    private static final long PAUSE = 1_000_000_000L;

    private final int worker;
    private final AtomicLong packets = new AtomicLong();

    /** When one was told last; the worker's thread alone reads and writes what follows. */
    private long toldAt;

    private long told;
    private long untold;

    Failures(int worker) {
        this.worker = worker;
    }

    /** Packets that were failed so far, for any thread. */
    long packets() {
        return packets.get();
    }

    /** The handler has thrown, at the cost of so many packets. */
    void add(int failed, Throwable thrown) {
        packets.addAndGet(failed);
        long now = System.nanoTime();
        if (told > 0 && now - toldAt < PAUSE) {
            untold++;
            return;
        }
        String message =
                "worker "
                        + worker
                        + ": the handler has failed "
                        + failed
                        + " packets: "
                        + thrown
                        + (untold == 0 ? "" : " (and " + untold + " times before)");
        if (told == 0) {
            LOG.log(System.Logger.Level.ERROR, message, thrown);
        } else {
            LOG.log(System.Logger.Level.ERROR, message);
        }
        toldAt = now;
        told++;
        untold = 0;
    }
}
