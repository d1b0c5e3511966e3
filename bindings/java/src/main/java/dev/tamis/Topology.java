package dev.tamis;

import com.grack.nanojson.JsonObject;

import java.util.List;

/**
 * The processors that this process may run on, as the system tells of them.
 *
 * @param processors each of them
 */
public record Topology(List<Processor> processors) {
    /**
     * A logical processor.
     *
     * @param number the system's number for it
     * @param core the core that it is a thread of
     * @param socket the socket of that core
     */
    public record Processor(int number, int core, int socket) {
        static Processor of(JsonObject processor) {
            int number = processor.getInt("number");
            return new Processor(
                    number, processor.getInt("core", number), processor.getInt("socket"));
        }
    }

    /**
     * Those of this machine that this process may run on.
     *
     * @return the topology, in the order of their numbers
     */
    public static Topology read() {
        NativeLibrary.load();
        return of(Native.topology());
    }

    static Topology of(String json) {
        return new Topology(Json.list(Json.object(json), "processors", Processor::of));
    }
}
