package dev.tamis.bench;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;

/**
 * A technique of the realistic job and the floor in turns, for machines that are busy with other work.
 *
 * <p>Contract: what is taken is the thread's time on a processor, in rounds that are short enough to find the machine in the
 * same state twice, each by the floor's beside it; the ratio is their median. The fifth percentiles of both are those of rounds
 * that were hardly disturbed. {@code java -Dbench.library=FILE -cp benchmarks.jar dev.tamis.bench.Turns tamis 32}.
 */
final class Turns {
    private static final int PAIRS = 1200;

    /** Four times all frames. */
    private static final int PACKETS = 32_768;

    private static final long WARM_UP_NANOS = 3_000_000_000L;
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private final int burst;
    private final double[] floors = new double[PAIRS];
    private final double[] ours = new double[PAIRS];
    private final double[] ratios = new double[PAIRS];

    private Turns(int burst) {
        this.burst = burst;
    }

    /**
     * Prints a line.
     *
     * @param arguments the technique, and frames of a burst
     */
    public static void main(String[] arguments) {
        if (arguments.length != 2) {
            throw new IllegalArgumentException("expected a technique and the frames of a burst, as in: tamis 32");
        }
        long floors = Native.frames();
        long frames = Native.frames();
        Turns turns = new Turns(Integer.parseInt(arguments[1]));
        turns.take(FrameTechniques.of("floor", floors), FrameTechniques.of(arguments[0], frames));
        if (Native.framesHash(floors) != Native.framesHash(frames)) {
            throw new IllegalStateException(arguments[0] + ": other frames than the floor's");
        }
        turns.print(arguments[0]);
    }

    private void take(FrameTechnique floor, FrameTechnique ours) {
        for (long begin = System.nanoTime(); System.nanoTime() - begin < WARM_UP_NANOS; ) {
            floor.round(PACKETS, burst);
            ours.round(PACKETS, burst);
        }
        for (int i = 0; i < PAIRS; i++) {
            boolean isFloorFirst = i % 2 == 0;
            double first = nanos(isFloorFirst ? floor : ours);
            double second = nanos(isFloorFirst ? ours : floor);
            this.floors[i] = isFloorFirst ? first : second;
            this.ours[i] = isFloorFirst ? second : first;
            ratios[i] = this.ours[i] / this.floors[i];
        }
    }

    /** Nanoseconds a packet. */
    private double nanos(FrameTechnique technique) {
        long begin = THREADS.getCurrentThreadCpuTime();
        technique.round(PACKETS, burst);
        return (double) (THREADS.getCurrentThreadCpuTime() - begin) / PACKETS;
    }

    private void print(String technique) {
        System.out.printf(
                "%s, bursts of %d: %.1f ns, floor %.1f ns, ratio %.2f (quartiles %.2f to %.2f); hardly disturbed: %.2f%n",
                technique,
                burst,
                at(ours, 50),
                at(floors, 50),
                at(ratios, 50),
                at(ratios, 25),
                at(ratios, 75),
                at(ours, 5) / at(floors, 5));
    }

    private static double at(double[] figures, int percent) {
        double[] sorted = figures.clone();
        Arrays.sort(sorted);
        return sorted[sorted.length * percent / 100];
    }
}
