package dev.tamis.bench;

import java.io.PrintStream;

/**
 * Holds the memory that a technique leaves to what the floor leaves after the same number of packets.
 *
 * <p>{@link #main} does so for all techniques and prints a line for each, which `tamis-bench java` compares once more.
 */
final class Check {
    /** More than a ring, and no multiple of a burst. */
    private static final int PACKETS = 24_577;

    private Check() {}

    /**
     * All techniques of this JVM: the job, the technique, what was varied, and the hash of the memory in hexadecimal.
     *
     * @param arguments none
     */
    public static void main(String[] arguments) {
        PrintStream lines = lines();
        for (String technique : Techniques.names()) {
            for (int structs : new int[] {1, 1024}) {
                print(lines, "study", technique, structs, study(technique, structs));
            }
        }
        for (String technique : FrameTechniques.names()) {
            for (int burst : new int[] {1, 32, 64, 256}) {
                print(lines, "realistic", technique, burst, realistic(technique, burst));
            }
        }
    }

    /** Standard output for lines alone: what a technique's library logs there goes to standard error. */
    static PrintStream lines() {
        PrintStream lines = System.out;
        System.setOut(System.err);
        return lines;
    }

    private static void print(PrintStream lines, String job, String technique, int varied, long hash) {
        lines.printf("%s %s %d %016x%n", job, technique, varied, hash);
    }

    private static long study(String technique, int structs) {
        long pool = Native.pool(structs, Techniques.isAligned(technique));
        long sum = Techniques.of(technique, pool).round(PACKETS);
        long hash = study(technique, pool, structs, PACKETS, sum);
        Native.closePool(pool);
        return hash;
    }

    /** What the pool holds, if the floor's pool holds the same; `sum` is what the rounds added up to. */
    static long study(String technique, long pool, int structs, long packets, long sum) {
        long floor = Native.pool(structs, false);
        long expected = Native.floor(floor, packets);
        same(technique, "the sum of all fields", expected, sum);
        same(technique, "the structs", Native.hash(floor), Native.hash(pool));
        Native.closePool(floor);
        return Native.hash(pool);
    }

    private static long realistic(String technique, int burst) {
        long frames = Native.frames();
        FrameTechniques.of(technique, frames).round(PACKETS, burst);
        long hash = realistic(technique, frames, PACKETS);
        Native.closeFrames(frames);
        return hash;
    }

    /** What the frames are, if the floor's are the same. */
    static long realistic(String technique, long frames, long packets) {
        long floor = Native.frames();
        Native.framesFloor(floor, packets, Technique.BURST);
        same(technique, "the frames", Native.framesHash(floor), Native.framesHash(frames));
        Native.closeFrames(floor);
        return Native.framesHash(frames);
    }

    private static void same(String technique, String what, long expected, long found) {
        if (expected != found) {
            throw new IllegalStateException(
                    String.format("%s: %s: %016x, the floor's are %016x", technique, what, found, expected));
        }
    }
}
