package dev.tamis;

/**
 * Hands bursts of the benchmark's own descriptors to a handler, as a worker hands it those of a run.
 *
 * <p>Contract: one thread. It is in this package because what a worker does is nobody else's to call.
 */
public final class Delivery {
    private final Failures failures = new Failures(0);
    private final Burst burst;
    private final Handler handler;

    /**
     * Of one array of descriptors, to one handler.
     *
     * @param descriptors the address of the first one
     * @param handler the handler
     */
    public Delivery(long descriptors, Handler handler) {
        this.burst = new Burst(descriptors, failures);
        this.handler = handler;
    }

    /**
     * Has the handler give verdicts.
     *
     * @param polled how many descriptors are filled
     */
    public void deliver(int polled) {
        burst.deliver(handler, polled);
    }

    /** Throws if the handler ever has. */
    public void check() {
        if (failures.packets() > 0) {
            throw new IllegalStateException(failures.packets() + " packets that the handler failed");
        }
    }
}
