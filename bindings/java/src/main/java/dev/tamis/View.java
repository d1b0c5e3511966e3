package dev.tamis;

/**
 * A header of a packet, as a window on its memory.
 *
 * <p>Each packet has one view of each kind and points it at its header when asked for it, so
 * nothing is allocated. A view is good for as long as its packet stays where it is: after the burst
 * has gone on to another packet, after the handler has returned, and after the packet was trimmed
 * or grown, each access throws {@link StalePacketException}, as it does in another thread than that
 * of the worker.
 *
 * <p>Numbers are unsigned: 8 and 16 bits are an {@code int}, 32 and 48 bits a {@code long}. A
 * setter throws {@link UnsignedRangeException} for a value that does not fit and writes nothing
 * then.
 */
public abstract class View {
    /** Off for benchmarks alone: an access that should throw may end the process then. */
    static final boolean CHECKED = !Boolean.getBoolean("tamis.unchecked");

    final Packet packet;

    /** Of the header's first byte. */
    private long address;

    /** Where that is in the packet. */
    private int offset;

    /** The packet's stamp when the view was taken. */
    private long stamp;

    View(Packet packet) {
        this.packet = packet;
    }

    /**
     * Points this view at a header that the packet has found whole at this address. What it knows
     * comes with it, as a view's own way to its packet costs loads that the compiler cannot spare.
     */
    final void point(long address, int offset, long stamp) {
        this.address = address;
        this.offset = offset;
        this.stamp = stamp;
    }

    /**
     * The address of a byte of the part that {@link #point} has proven, if the view still holds.
     */
    final long at(int index) {
        if (CHECKED && (stamp != packet.stamp() || packet.isForeign())) {
            throw stale();
        }
        return address + index;
    }

    /**
     * Where the header begins.
     *
     * @return bytes from the packet's first one
     */
    public final int offset() {
        at(0);
        return offset;
    }

    private StalePacketException stale() {
        return new StalePacketException(
                getClass().getSimpleName()
                        + ": its packet is not at hand any more, has changed its length, or is"
                        + " another thread's; take the view anew");
    }

    static void require(String field, int value, int max) {
        if (CHECKED && (value & ~max) != 0) {
            throw new UnsignedRangeException(field, value, max);
        }
    }

    static void require(String field, long value, long max) {
        if (CHECKED && (value & ~max) != 0) {
            throw new UnsignedRangeException(field, value, max);
        }
    }
}
