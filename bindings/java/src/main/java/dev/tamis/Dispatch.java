package dev.tamis;

/**
 * What a worker does with its handler, whoever drives it: a {@link Worker} that polls, or tamis,
 * which makes an {@link Upcall} for each burst.
 *
 * <p>Contract: one thread, but for {@link #failed} and {@link #cause}. What the handler throws of
 * packets stays here ({@link Failures}); what it throws as it begins is the caller's to end with.
 */
final class Dispatch {
    private static final System.Logger LOG = System.getLogger("dev.tamis");

    private final Handler handler;
    private final Context context;
    private final Failures failures;

    /** From its beginning. */
    private Burst burst;

    /** Why it ended before its run did; null if it did not. */
    private volatile Throwable cause;

    Dispatch(Handler handler, Context context) {
        this.handler = handler;
        this.context = context;
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

    /** The handler begins; its packets will be described from this address on. */
    void begin(long descriptors) throws Exception {
        burst = new Burst(descriptors, failures);
        handler.init(context);
    }

    /** So many packets wait, or with 0 none for a while. */
    void take(int waiting) {
        if (waiting > 0) {
            burst.deliver(handler, waiting);
        } else {
            idle();
        }
    }

    private void idle() {
        try {
            handler.idle(System.nanoTime());
        } catch (Throwable t) {
            failures.add(0, t);
        }
    }

    /** It goes no further, though its run does. */
    void endedBy(Throwable why) {
        cause = why;
        LOG.log(System.Logger.Level.ERROR, "worker " + context.worker() + " has ended", why);
    }

    /** It has had no thread, and gets none. */
    void giveUp(Throwable why) {
        cause = why;
    }

    /** The handler ends. */
    void close() {
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
