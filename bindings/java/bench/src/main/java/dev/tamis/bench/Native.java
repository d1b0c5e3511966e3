package dev.tamis.bench;

import java.nio.ByteBuffer;

/**
 * The functions of the benchmark's library, {@code bindings/java/bench/native}.
 *
 * <p>Contract: the property {@code bench.library} has the library's path. A handle belongs to one thread, until it is closed.
 */
final class Native {
    /** Where the library is. */
    static final String LIBRARY = System.getProperty("bench.library");

    static {
        if (LIBRARY == null) {
            throw new IllegalStateException("-Dbench.library: expected the path of libtamis_java_bench.so");
        }
        System.load(LIBRARY);
    }

    private Native() {}

    // The study's job: structs of a pool, each the next one round the ring.

    static native long pool(int structs, boolean isAligned);

    static native void closePool(long pool);

    /** Of all fields of all structs. */
    static native long hash(long pool);

    /** The job in Rust; what all fields added up to. */
    static native long floor(long pool, long packets);

    /** The address of the first struct. */
    static native long base(long pool);

    /** All structs. */
    static native ByteBuffer mapping(long pool);

    /** The address of the next struct. */
    static native long pointer(long pool);

    /** Puts addresses of up to 256 structs where {@link #burst} says; how many. */
    static native int poll(long pool, int most);

    static native long burst(long pool);

    static native void takeBuffer(long pool, ByteBuffer direct);

    static native void giveBuffer(long pool, ByteBuffer direct);

    static native void takeArray(long pool, byte[] array);

    static native void giveArray(long pool, byte[] array);

    static native void takeLookup(long pool, Packet packet);

    static native Packet makeLookup(long pool);

    static native void giveLookup(long pool, Packet packet);

    static native void takeMethods(long pool, Packet packet);

    static native Packet makeMethods(long pool);

    static native void giveMethods(long pool, Packet packet);

    static native void takeFields(long pool, Packet packet);

    static native Packet makeFields(long pool);

    static native void giveFields(long pool, Packet packet);

    // The realistic job: frames.

    static native long frames();

    static native void closeFrames(long frames);

    /** Of all frames, and of how many passed and were dropped. */
    static native long framesHash(long frames);

    /** The job in Rust. */
    static native void framesFloor(long frames, long packets, int burst);

    static native long framesBase(long frames);

    static native long framesBytes(long frames);

    /** All buffers. */
    static native ByteBuffer framesMapping(long frames);

    /** The address of the first descriptor. */
    static native long descriptors(long frames);

    static native ByteBuffer descriptorsMapping(long frames);

    /** Takes the last burst back, and fills descriptors of up to 256 frames; how many. */
    static native int framesPoll(long frames, int most);

    /** Polls, and calls the handler's {@code burst} for each burst. */
    static native void upcalls(long frames, long packets, int burst, Upcalled handler);
}
