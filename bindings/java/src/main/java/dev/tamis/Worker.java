package dev.tamis;

import java.util.OptionalInt;

/**
 * A worker's thread: polls, hands each burst to its handler, and ends with its run.
 *
 * <p>Contract: what the handler throws of packets stays here ({@link Failures}); what {@code init}
 * or a poll throws ends the worker, and with it the run. The thread binds itself to its core before
 * anything else, so that what the handler allocates first is near it.
 */
final class Worker implements Runnable {
    private static final System.Logger LOG = System.getLogger("dev.tamis");

    private final Poller poller;
    private final Handler handler;
    private final Context context;
    private final OptionalInt core;
    private final long idleNanos;
    private final Failures failures;

    /** Why it ended before its run did; null if it did not. */
    private volatile Throwable cause;

    Worker(Poller poller, Handler handler, Context context, OptionalInt core, long idleNanos) {
        this.poller = poller;
        this.handler = handler;
        this.context = context;
        this.core = core;
        this.idleNanos = idleNanos;
        this.failures = new Failures(context.worker());
    }

    /** Packets that its handler has failed. */
    long failed() {
        return failures.packets();
    }

    /** Why it ended before its run did, or null. */
    Throwable cause() {
        return cause;
    }

    /** Ends it without a thread. */
    void giveUp(Throwable why) {
        cause = why;
        poller.close();
    }

    @Override
    public void run() {
        try (poller) {
            core.ifPresent(Native::pin);
            handler.init(context);
            pass();
        } catch (Throwable t) {
            cause = t;
            LOG.log(System.Logger.Level.ERROR, "worker " + context.worker() + " has ended", t);
        } finally {
            close();
        }
    }

    private void pass() {
        Burst burst = new Burst(poller.descriptors(), failures);
        for (int n = poller.poll(idleNanos); n >= 0; n = poller.poll(idleNanos)) {
            if (n > 0) {
                burst.deliver(handler, n);
            } else {
                idle();
            }
        }
    }

    private void idle() {
        try {
            handler.idle(System.nanoTime());
        } catch (Throwable t) {
            failures.add(0, t);
        }
    }

    private void close() {
        try {
            handler.close();
        } catch (Throwable t) {
            LOG.log(
                    System.Logger.Level.ERROR,
                    "worker " + context.worker() + ": the handler could not close",
                    t);
        }
    }
}
