package dev.tamis;

import java.util.OptionalInt;

/**
 * A worker's thread in Java: polls, hands each burst to its handler, and ends with its run.
 *
 * <p>Contract: what {@code init} or a poll throws ends the worker, and with it the run. The thread
 * binds itself to its core before anything else, so that what the handler allocates first is near
 * it.
 */
final class Worker implements Runnable {
    private final Poller poller;
    private final Dispatch dispatch;
    private final OptionalInt core;
    private final long idleNanos;

    Worker(Poller poller, Dispatch dispatch, OptionalInt core, long idleNanos) {
        this.poller = poller;
        this.dispatch = dispatch;
        this.core = core;
        this.idleNanos = idleNanos;
    }

    /** Ends it without a thread. */
    void giveUp(Throwable why) {
        dispatch.giveUp(why);
        poller.close();
    }

    @Override
    public void run() {
        try (poller) {
            core.ifPresent(Native::pin);
            dispatch.begin(poller.descriptors());
            for (int n = poller.poll(idleNanos); n >= 0; n = poller.poll(idleNanos)) {
                dispatch.take(n);
            }
        } catch (Throwable t) {
            dispatch.endedBy(t);
        } finally {
            dispatch.close();
        }
    }
}
