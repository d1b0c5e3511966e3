package dev.tamis;

/**
 * The functions of the native library, and nothing else.
 *
 * <p>Contract: {@link NativeLibrary#load} comes first. Handles are numbers that the library gave
 * and takes back; each method throws {@link TamisException} with the message that the command line
 * would print. A worker's handle belongs to the thread that polls it; those of a run may be used by
 * any thread. Nothing here is called per packet: {@link #poll} is called per burst.
 */
final class Native {
    private Native() {}

    /**
     * Version of the descriptor's layout; fills {@code offsets} with a descriptor's size, the most
     * descriptors of a burst, and the offsets of its fields in the order of {@link Descriptor}.
     */
    static native int layout(long[] offsets);

    /**
     * A run to be, from the text of its configuration, and its file or the folder that its relative
     * paths are from.
     */
    static native long open(String toml, String place);

    /** Opens the ports and starts the run: the number of its workers. */
    static native int start(long run);

    /** The handle of a worker of a run that was started, by its number from 0. */
    static native long worker(long run, int number);

    /** The address of the worker's descriptors, which stay there until it is closed. */
    static native long descriptors(long worker);

    /**
     * Carries out the verdicts of the burst before and waits for frames: how many there are, 0
     * after {@code timeoutNanos} without one, -1 once the run has ended.
     */
    static native int poll(long worker, long timeoutNanos);

    /** Binds the calling thread to one core. */
    static native void pin(int core);

    /** Asks a run to end; it takes what its ports still have. */
    static native void stop(long run);

    /** The document {@code tamis.status/1}. */
    static native String status(long run);

    /** Answers a line of the control protocol with a line. */
    static native String request(long run, String line);

    /**
     * The last status of a run that has ended, or null where it still runs after {@code
     * timeoutNanos}.
     */
    static native String await(long run, long timeoutNanos);

    /** The configuration that a file of the study's framework stands for, whose name is for messages alone. */
    static native String properties(String file, String text);

    /** Gives a worker up. One whose run still goes is taken for a worker that failed. */
    static native void closeWorker(long worker);

    /** Stops the run if it still goes, and gives it up. */
    static native void closeRun(long run);

    /**
     * The processors that this process may run on: {@code {"processors": [{"number": 0, "core": 0,
     * "socket": 0}]}}, by the numbers that the system has for them.
     */
    static native String topology();

    /**
     * The document of {@code tamis --json replay}. Rules and captures are paths; the options are an
     * object whose keys are the command line's without dashes ({@code {"in": "lan0", "net":
     * ["lan0=10.0.0.0/8"], "rp-filter": true}}), and others are refused.
     */
    static native String replay(String[] rules, String[] captures, String optionsJson);

    /** The document of {@code tamis --json why}, of the packet with that number, from 1. */
    static native String why(String[] rules, String capture, long number, String optionsJson);
}
