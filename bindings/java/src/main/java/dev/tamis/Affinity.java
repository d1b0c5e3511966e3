package dev.tamis;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.OptionalInt;

/**
 * The core that each worker's thread binds itself to, from within, before anything else.
 *
 * <p>Where there are more workers than processors, these are given out again. The threads of the
 * JVM run where they did.
 */
public abstract sealed class Affinity {
    Affinity() {}

    /** The processor of a worker, if it has one. */
    abstract OptionalInt core(int worker, Status status);

    /**
     * What the configuration says ({@code [workers] cores}). This is what a run has unless told.
     *
     * @return the affinity
     */
    public static Affinity configured() {
        return new Configured();
    }

    /**
     * Threads run anywhere.
     *
     * @return the affinity
     */
    public static Affinity none() {
        return new Listed(List.of());
    }

    /**
     * One processor after the other: the threads of a core, the cores of a socket, then the next
     * socket.
     *
     * @return the affinity
     */
    public static Affinity compact() {
        return new Listed(compact(Topology.read()));
    }

    /**
     * One processor of each socket in turn; the second thread of a core after the first ones of
     * all.
     *
     * @return the affinity
     */
    public static Affinity scatter() {
        return new Listed(scatter(Topology.read()));
    }

    /**
     * These processors, one for each worker.
     *
     * @param cores the system's numbers of them
     * @return the affinity
     */
    public static Affinity of(int... cores) {
        List<Integer> listed = new ArrayList<>();
        for (int core : cores) {
            View.require("core", core, Integer.MAX_VALUE);
            listed.add(core);
        }
        return new Listed(listed);
    }

    static List<Integer> compact(Topology topology) {
        return sorted(topology).stream().map(Topology.Processor::number).toList();
    }

    static List<Integer> scatter(Topology topology) {
        record Place(int thread, int ofSocket, Topology.Processor processor) {}

        List<Place> places = new ArrayList<>();
        for (Topology.Processor one : sorted(topology)) {
            int thread = 0;
            for (Place before : places) {
                boolean isSame =
                        before.processor.socket() == one.socket()
                                && before.processor.core() == one.core();
                thread += isSame ? 1 : 0;
            }
            int nth = 0;
            for (Place before : places) {
                nth += before.processor.socket() == one.socket() && before.thread == thread ? 1 : 0;
            }
            places.add(new Place(thread, nth, one));
        }
        Comparator<Place> order =
                Comparator.comparingInt(Place::thread).thenComparingInt(Place::ofSocket);
        places.sort(order.thenComparingInt(place -> place.processor.socket()));
        return places.stream().map(place -> place.processor.number()).toList();
    }

    private static List<Topology.Processor> sorted(Topology topology) {
        Comparator<Topology.Processor> order = Comparator.comparingInt(Topology.Processor::socket);
        order =
                order.thenComparingInt(Topology.Processor::core)
                        .thenComparingInt(Topology.Processor::number);
        return topology.processors().stream().sorted(order).toList();
    }

    private static final class Listed extends Affinity {
        private final List<Integer> cores;

        Listed(List<Integer> cores) {
            this.cores = cores;
        }

        @Override
        OptionalInt core(int worker, Status status) {
            return cores.isEmpty()
                    ? OptionalInt.empty()
                    : OptionalInt.of(cores.get(worker % cores.size()));
        }
    }

    private static final class Configured extends Affinity {
        @Override
        OptionalInt core(int worker, Status status) {
            for (Status.OneWorker one : status.workers()) {
                // By a ring the worker has a thread besides this one, which has the core.
                if (one.number() == worker && one.core() != null && one.ring() == null) {
                    return OptionalInt.of(one.core());
                }
            }
            return OptionalInt.empty();
        }
    }
}
