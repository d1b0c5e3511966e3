package dev.tamis;

import java.nio.file.Path;
import java.time.Duration;
import java.util.function.Supplier;

/**
 * A configuration that has been read, whose frames are to pass a handler.
 *
 * <pre>{@code
 * try (Dataplane dataplane = Dataplane.open(Path.of("live.toml"))) {
 *     dataplane.run(() -> packet -> packet.isUdp() ? Verdict.DROP : Verdict.PASS);
 * }
 * }</pre>
 *
 * <p>Contract: one thread; it starts once. {@link Run} is for any thread.
 */
public final class Dataplane implements AutoCloseable {
    private static final Duration IDLE = Duration.ofMillis(100);

    private final long handle;
    private Affinity affinity = Affinity.configured();
    private Duration idle = IDLE;

    /** What it was started as; null before that. */
    private Run run;

    private boolean isClosed;

    private Dataplane(long handle) {
        this.handle = handle;
    }

    /**
     * Reads a configuration and the rules that it names.
     *
     * @param config the configuration
     * @return what can be started
     * @throws TamisException in the words of the command line, with file, line and column
     */
    public static Dataplane open(Config config) {
        NativeLibrary.load();
        return new Dataplane(Native.open(config.toml(), config.place().toString()));
    }

    /**
     * Reads a configuration from a file.
     *
     * @param file of TOML
     * @return what can be started
     * @throws TamisException in the words of the command line, with file, line and column
     */
    public static Dataplane open(Path file) {
        return open(Config.of(file));
    }

    /**
     * Has the workers' threads run on these cores.
     *
     * @param affinity which; {@link Affinity#configured} unless told
     * @return this
     */
    public Dataplane affinity(Affinity affinity) {
        this.affinity = affinity;
        return this;
    }

    /**
     * Says after how long without a packet {@link Handler#idle} is called.
     *
     * @param after the time; 100 ms unless told
     * @return this
     */
    public Dataplane idle(Duration after) {
        this.idle = after;
        return this;
    }

    /**
     * Opens the ports and starts a thread for each worker.
     *
     * @param handlers makes a handler for each worker
     * @return the run, which is closed with this
     * @throws TamisException if a port cannot be opened
     */
    public Run start(Supplier<? extends Handler> handlers) {
        if (run != null || isClosed) {
            throw new IllegalStateException("this data plane was started or closed before");
        }
        run = new Run(handle, Native.start(handle));
        run.start(handlers, affinity, idle.toNanos());
        return run;
    }

    /**
     * Starts and waits for the end: that of its captures, {@link Run#stop}, or a failure.
     *
     * @param handlers makes a handler for each worker
     * @return the last status
     * @throws TamisException if a port or a worker has failed
     */
    public Status run(Supplier<? extends Handler> handlers) {
        return start(handlers).await();
    }

    /** Stops the run if it still goes, and gives up ports and memory. */
    @Override
    public void close() {
        if (!isClosed) {
            isClosed = true;
            if (run != null) {
                run.close();
            } else {
                Native.closeRun(handle);
            }
        }
    }
}
