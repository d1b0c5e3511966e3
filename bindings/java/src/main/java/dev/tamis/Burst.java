package dev.tamis;

import java.util.Arrays;
import java.util.Objects;

/**
 * The packets that wait for their verdicts, in the order in which they came.
 *
 * <p>Contract: one thread, that of the worker. All of it holds until the handler returns; from then
 * on, and in other threads, each access throws {@link StalePacketException}.
 */
public final class Burst {
    private static final int BITS = Long.SIZE;

    private final Packet packet = new Packet(this);
    private final Failures failures;

    /** The address of the first descriptor. */
    private final long descriptors;

    private int size;

    /** The packet that {@link #packet} is pointed at. */
    private int position;

    /** A bit for each packet that a handler has given a verdict itself. */
    private long[] judged = new long[4];

    Burst(long descriptors, Failures failures) {
        this.descriptors = descriptors;
        this.failures = failures;
    }

    /**
     * How many packets there are.
     *
     * @return at least 1
     */
    public int size() {
        return size;
    }

    /**
     * A packet. There is one object, which is pointed at the packet that was asked for last.
     *
     * @param index from 0
     * @return the packet
     */
    public Packet packet(int index) {
        Objects.checkIndex(index, size);
        if (View.CHECKED && packet.isForeign()) {
            throw packet.outside(0, 0);
        }
        position = index;
        packet.point(at(index));
        return packet;
    }

    /** The first {@code n} descriptors are those of the packets that wait. */
    Burst begin(int n) {
        size = n;
        packet.own();
        if (n > judged.length * BITS) {
            judged = new long[n / BITS + 1];
        }
        return this;
    }

    /** They do not any more. */
    void end() {
        packet.release();
        size = 0;
        Arrays.fill(judged, 0);
    }

    /** Has the handler give verdicts to the first {@code n} packets. */
    void deliver(Handler handler, int n) {
        begin(n);
        try {
            handler.burst(this);
        } catch (Throwable t) {
            failures.add(failOthers(), t);
        } finally {
            end();
        }
    }

    /** Asks the handler for each packet. */
    void each(Handler handler) {
        int all = size;
        long at = descriptors;
        for (int i = 0; i < all; i++, at += Descriptor.SIZE) {
            try {
                position = i;
                packet.point(at);
                put(at, number(handler.packet(packet)));
            } catch (Throwable t) {
                put(at, Descriptor.HANDLER_ERROR);
                failures.add(1, t);
            }
        }
    }

    private static int number(Verdict verdict) {
        return Objects.requireNonNull(verdict, "the handler has returned no verdict").ordinal();
    }

    /** Gives the packet at hand a verdict. */
    void verdict(Verdict verdict) {
        put(at(position), number(verdict));
        judged[position / BITS] |= 1L << position;
    }

    /**
     * Those that neither the handler itself nor {@link #each} has given a verdict have been failed:
     * how many.
     */
    private int failOthers() {
        int failed = 0;
        for (int i = 0; i < size; i++) {
            if ((judged[i / BITS] >>> i & 1) == 0 && isPass(i)) {
                put(at(i), Descriptor.HANDLER_ERROR);
                failed++;
            }
        }
        return failed;
    }

    private boolean isPass(int index) {
        return Mem.getByte(at(index) + Descriptor.VERDICT) == Verdict.PASS.ordinal();
    }

    private static void put(long descriptor, int verdict) {
        Mem.putByte(descriptor + Descriptor.VERDICT, (byte) verdict);
    }

    /** The address of a packet's descriptor. */
    private long at(int index) {
        return descriptors + (long) index * Descriptor.SIZE;
    }
}
