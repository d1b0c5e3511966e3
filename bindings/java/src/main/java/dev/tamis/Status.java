package dev.tamis;

import com.grack.nanojson.JsonObject;

import java.util.List;
import java.util.Map;

/**
 * What a run has done so far: {@code tamis.status/1}.
 *
 * @param wires each direction of each wire
 * @param workers each worker
 * @param program the number of the rules in force, which each change raises
 * @param json the whole document
 */
public record Status(List<Direction> wires, List<OneWorker> workers, long program, String json) {
    /**
     * One direction of a wire. What it received and made is what it sent and dropped.
     *
     * @param in the port that frames come in by
     * @param out the one that they leave by
     * @param received frames that came in
     * @param made frames that were made here: replies and fragments
     * @param sent frames that left
     * @param dropped the others, by reason
     * @param verdicts frames that rules evaluated, by verdict
     */
    public record Direction(
            String in,
            String out,
            long received,
            long made,
            long sent,
            Map<String, Long> dropped,
            Map<String, Long> verdicts) {
        static Direction of(JsonObject wire) {
            return new Direction(
                    wire.getString("in"),
                    wire.getString("out"),
                    wire.getLong("received"),
                    wire.getLong("made"),
                    wire.getLong("sent"),
                    Json.numbers(wire, "dropped"),
                    Json.numbers(wire, "verdicts"));
        }

        /**
         * Frames that were dropped for a reason, such as {@code middlebox} or {@code rule}.
         *
         * @param reason its name
         * @return how many
         */
        public long dropped(String reason) {
            return dropped.getOrDefault(reason, 0L);
        }
    }

    /**
     * One worker.
     *
     * @param number its number, from 0
     * @param core the core that the configuration gives it, or null
     * @param state {@code busy}, {@code asleep}, {@code stuck} or {@code ended}
     * @param ring the ring to its handler, or null without {@code [middlebox] ring}
     */
    public record OneWorker(int number, Integer core, String state, Ring ring) {
        static OneWorker of(JsonObject worker) {
            JsonObject ring = worker.getObject("ring");
            return new OneWorker(
                    worker.getInt("number"),
                    Json.integer(worker, "core"),
                    worker.getString("state"),
                    ring == null ? null : Ring.of(ring));
        }
    }

    /**
     * The ring between a worker and its handler.
     *
     * @param room packets that may be there
     * @param packets those that were when the worker looked last
     * @param most the most that ever were
     */
    public record Ring(int room, int packets, int most) {
        static Ring of(JsonObject ring) {
            return new Ring(ring.getInt("room"), ring.getInt("frames"), ring.getInt("most"));
        }
    }

    static Status of(String json) {
        JsonObject status = Json.document(json, "tamis.status/1");
        return new Status(
                Json.list(status, "wires", Direction::of),
                Json.list(status, "workers", OneWorker::of),
                status.getLong("program"),
                json);
    }
}
