package dev.tamis;

/**
 * A middlebox: says of each packet what happens to it, and may rewrite it where it is.
 *
 * <p>Each worker has an instance of its own, and one thread calls all of its methods, so nothing in
 * it needs a lock. What {@link #packet} or {@link #burst} throws is counted, told in the log, and
 * costs the packets concerned the verdict that the configuration gives them ({@code [middlebox]
 * on_error}); the run goes on. What {@link #init} throws ends the run.
 */
@FunctionalInterface
public interface Handler {
    /**
     * Begins, in the thread of its worker, before the first packet.
     *
     * @param context which worker it is
     * @throws Exception if it cannot begin
     */
    default void init(Context context) throws Exception {}

    /**
     * Takes the packets that wait. Unless overridden, it asks {@link #packet} for each. Those that
     * it gives no {@linkplain Packet#verdict verdict} pass; if it throws, they are the ones that it
     * failed.
     *
     * @param burst the packets
     * @throws Exception if it fails those that have no verdict yet
     */
    default void burst(Burst burst) throws Exception {
        burst.each(this);
    }

    /**
     * Says what happens to a packet.
     *
     * @param packet the packet, until this returns
     * @return the verdict
     * @throws Exception if it fails this packet
     */
    Verdict packet(Packet packet) throws Exception;

    /**
     * Is called when no packet has come for a while: 100 ms unless {@link Dataplane#idle} says
     * otherwise.
     *
     * @param now {@link System#nanoTime}
     * @throws Exception is counted and told
     */
    default void idle(long now) throws Exception {}

    /**
     * Ends, in the thread of its worker, after the last packet.
     *
     * @throws Exception is told
     */
    default void close() throws Exception {}
}
