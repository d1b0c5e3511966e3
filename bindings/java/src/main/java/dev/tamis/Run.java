package dev.tamis;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.LongFunction;
import java.util.function.Supplier;
import java.util.stream.Stream;

/**
 * A run: its workers, and what can be asked of it while it goes.
 *
 * <p>Contract: any thread. Whoever asks holds the reading side of {@code open}; {@link #close}
 * takes the writing side, so the native run is given up when nobody is in it. A worker whose
 * handler does not return keeps it from being given up.
 */
public final class Run {
    private static final long SLICE = 100_000_000L;
    private static final long PATIENCE_MILLIS = 10_000;

    private final long handle;
    private final int workers;
    private final List<Dispatch> dispatches = new ArrayList<>();
    private final List<Thread> threads = new ArrayList<>();
    private final ReadWriteLock open = new ReentrantReadWriteLock();
    private boolean isClosed;

    /** The last status of a run that has ended. */
    private volatile Status last;

    Run(long handle, int workers) {
        this.handle = handle;
        this.workers = workers;
    }

    /**
     * Starts the threads, once there is a handler for each. A worker whose thread cannot start is
     * given up.
     */
    void start(Supplier<? extends Handler> handlers, Affinity affinity, long idleNanos) {
        List<Handler> made = Stream.<Handler>generate(handlers).limit(workers).toList();
        Status status = status();
        List<Worker> polling = new ArrayList<>();
        for (int number = 0; number < workers; number++) {
            Poller poller = new Poller.OfRun(Native.worker(handle, number));
            Dispatch dispatch = dispatch(number, made.get(number));
            polling.add(new Worker(poller, dispatch, affinity.core(number, status), idleNanos));
        }
        for (Worker worker : polling) {
            Thread thread = new Thread(worker, "tamis-worker-" + threads.size());
            thread.setDaemon(true);
            startOrGiveUp(thread, worker);
        }
    }

    /** What a worker of it does with its handler; to be asked for before it does. */
    Dispatch dispatch(int worker, Handler handler) {
        Dispatch dispatch = new Dispatch(handler, new Context(worker, workers, this));
        dispatches.add(dispatch);
        return dispatch;
    }

    private void startOrGiveUp(Thread thread, Worker worker) {
        try {
            thread.start();
            threads.add(thread);
        } catch (OutOfMemoryError e) {
            worker.giveUp(e);
        }
    }

    /** Asks the run to end, once what its ports still have is handled. */
    public void stop() {
        inside(
                run -> {
                    Native.stop(run);
                    return run;
                });
    }

    /**
     * What it has done so far.
     *
     * @return the status, the last one if it has ended
     */
    public Status status() {
        Status ended = last;
        return ended != null ? ended : Status.of(inside(Native::status));
    }

    /**
     * Waits for the end of the run.
     *
     * @return the last status
     * @throws TamisException if a port or a worker has failed, or the calling thread is interrupted
     */
    public Status await() {
        Status ended = null;
        while (ended == null) {
            ended = await(Duration.ofNanos(SLICE));
        }
        return ended;
    }

    /**
     * Waits for the end of the run, or for some time.
     *
     * @param most how long
     * @return the last status, or null if it still goes
     * @throws TamisException if a port or a worker has failed, or the calling thread is interrupted
     */
    public Status await(Duration most) {
        long until = System.nanoTime() + most.toNanos();
        long left = most.toNanos();
        while (last == null && left > 0) {
            if (Thread.currentThread().isInterrupted()) {
                throw interrupted();
            }
            long slice = Math.min(left, SLICE);
            String json = ended(slice);
            if (json != null) {
                last = Status.of(json);
            }
            left = until - System.nanoTime();
        }
        return last;
    }

    /** The last status if it ends within that time, else null. */
    private String ended(long nanos) {
        try {
            String json = inside(run -> Native.await(run, nanos));
            if (json != null) {
                join();
                throwCause();
            }
            return json;
        } catch (TamisException e) {
            join();
            throwCause();
            throw e;
        }
    }

    /**
     * Packets that handlers have failed so far.
     *
     * @return how many
     */
    public long failed() {
        return dispatches.stream().mapToLong(Dispatch::failed).sum();
    }

    /**
     * Its rules and bans.
     *
     * @return what can be asked about them, and changed
     */
    public Rules rules() {
        return new Rules(this::request);
    }

    /**
     * Asks anything that the control protocol has (docs/control.md), as {@code tamis ctl} does.
     *
     * @param line a request in JSON
     * @return the answer in JSON, which may be an error
     */
    public String request(String line) {
        return inside(run -> Native.request(run, line));
    }

    /** Stops it if it still goes, waits for its threads, and gives it up. */
    void close() {
        if (last == null) {
            stop();
        }
        join();
        open.writeLock().lock();
        try {
            if (!isClosed) {
                isClosed = true;
                Native.closeRun(handle);
            }
        } finally {
            open.writeLock().unlock();
        }
    }

    private void throwCause() {
        for (Dispatch dispatch : dispatches) {
            Throwable cause = dispatch.cause();
            if (cause != null) {
                throw new TamisException("a worker has ended: " + cause, cause);
            }
        }
    }

    /** Waits for the threads: for those whose handlers do not return, only so long. */
    private void join() {
        long until = System.nanoTime() + PATIENCE_MILLIS * 1_000_000;
        for (Thread thread : threads) {
            try {
                thread.join(Math.max(1, (until - System.nanoTime()) / 1_000_000));
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw interrupted();
            }
            if (thread.isAlive()) {
                String words = ": the handler does not return, so the run cannot be closed";
                throw new TamisException(thread.getName() + words);
            }
        }
    }

    private static TamisException interrupted() {
        return new TamisException("interrupted while the end of the run was waited for");
    }

    /** Asks the native run while it is not being given up. */
    private <T> T inside(LongFunction<T> question) {
        open.readLock().lock();
        try {
            if (isClosed) {
                throw new IllegalStateException("this run was closed");
            }
            return question.apply(handle);
        } finally {
            open.readLock().unlock();
        }
    }
}
