package dev.tamis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;

/**
 * Which cores workers get; the orders are those of {@code [workers] cores} (dataplane,
 * run/topology.rs).
 */
class AffinityTest {
    /**
     * Two sockets with two cores of two threads each, numbered as firmware does: first threads
     * first.
     */
    private static Topology machine() {
        List<Topology.Processor> all = new ArrayList<>();
        for (int number = 0; number < 8; number++) {
            all.add(new Topology.Processor(number, number % 2, number / 2 % 2));
        }
        return new Topology(all);
    }

    @Test
    void compactFillsACoreThenASocketAndScatterTakesTurns() {
        assertEquals(List.of(0, 4, 1, 5, 2, 6, 3, 7), Affinity.compact(machine()));
        assertEquals(List.of(0, 2, 1, 3, 4, 6, 5, 7), Affinity.scatter(machine()));
        assertEquals(List.of(), Affinity.scatter(new Topology(List.of())));
    }

    @Test
    void workersHaveTheListedCoresInTurn() {
        Status status = new Status(List.of(), List.of(), 1, "");
        Affinity listed = Affinity.of(3, 1);
        assertEquals(OptionalInt.of(3), listed.core(0, status));
        assertEquals(OptionalInt.of(1), listed.core(1, status));
        assertEquals(OptionalInt.of(3), listed.core(2, status));
        assertEquals(OptionalInt.empty(), Affinity.none().core(0, status));
        assertThrows(UnsignedRangeException.class, () -> Affinity.of(-1));
    }

    @Test
    void withoutAWordItIsWhatTheConfigurationSays() {
        List<Status.OneWorker> workers =
                List.of(
                        new Status.OneWorker(0, null, "asleep", null),
                        new Status.OneWorker(1, 5, "asleep", null),
                        new Status.OneWorker(3, 7, "asleep", new Status.Ring(8, 0, 0)));
        Status status = new Status(List.of(), workers, 1, "");
        assertEquals(OptionalInt.empty(), Affinity.configured().core(0, status));
        assertEquals(OptionalInt.of(5), Affinity.configured().core(1, status));
        assertEquals(OptionalInt.empty(), Affinity.configured().core(2, status));
        assertEquals(OptionalInt.empty(), Affinity.configured().core(3, status));
    }

    @Test
    void theTopologyIsRead() {
        Topology read =
                Topology.of(
                        "{\"processors\": [{\"number\": 4, \"core\": 2, \"socket\": 1},"
                                + " {\"number\": 5}]}");
        assertEquals(
                List.of(new Topology.Processor(4, 2, 1), new Topology.Processor(5, 5, 0)),
                read.processors());
        assertThrows(TamisException.class, () -> Topology.of("[]"));
        assertEquals(Map.of(), Json.numbers(Json.object("{}"), "none"));
    }
}
