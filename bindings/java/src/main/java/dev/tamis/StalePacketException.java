package dev.tamis;

/**
 * A packet whose burst is over or that is another thread's, or a view of a packet that the burst has gone on from or that has
 * been trimmed or grown since. Take the view anew, or keep a {@linkplain Packet#copy() copy}.
 */
public final class StalePacketException extends IllegalStateException {
    private static final long serialVersionUID = 1L;

    StalePacketException(String message) {
        super(message);
    }
}
