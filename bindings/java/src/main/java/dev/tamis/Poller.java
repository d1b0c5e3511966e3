package dev.tamis;

/** Where a worker's packets come from: the native library, or a test. One thread polls. */
interface Poller extends AutoCloseable {
    /** The address of the descriptors. */
    long descriptors();

    /**
     * Carries out the verdicts of the burst before and waits for the next: its packets, 0 for none
     * in time, -1 at the end.
     */
    int poll(long timeoutNanos);

    /** Gives it up. */
    @Override
    void close();

    /** A worker of a run. */
    record OfRun(long handle) implements Poller {
        @Override
        public long descriptors() {
            return Native.descriptors(handle);
        }

        @Override
        public int poll(long timeoutNanos) {
            return Native.poll(handle, timeoutNanos);
        }

        @Override
        public void close() {
            Native.closeWorker(handle);
        }
    }
}
