package dev.tamis.examples;

/**
 * Which inside address and port has which outside port, of one protocol.
 *
 * <p>Contract: one thread; of a fixed size, so that packets allocate nothing. An outside port is
 * the inside one where that is free, and the next free one otherwise; it stays its owner's until
 * that has been silent for so long. The way from inside is an open addressing table with linear
 * probing, whose gaps are closed as entries go; the way back is an array.
 */
final class PortTable {
    private static final int FIRST = 1;
    private static final int PORTS = 1 << 16;

    /** By outside port: the address and port inside, one more than it so that 0 is free. */
    private final long[] inside = new long[PORTS];

    /** By outside port: when it was used last. */
    private final long[] usedAt = new long[PORTS];

    /** The outside port of a slot, 0 for none; twice as many as ports. */
    private final int[] slots = new int[2 * PORTS];

    private final long silence;
    private final int last;

    /** With outside ports from 1 to the last one. */
    PortTable(long silenceNanos, int last) {
        this.silence = silenceNanos;
        this.last = last;
    }

    private static long owner(long address, int port) {
        return (address << 16 | port) + 1;
    }

    private static int slot(long owner) {
        return (int) (owner * 0x9E37_79B9_7F4A_7C15L >>> 64 - 17);
    }

    /** The outside port of an inside one, made if it is new; -1 if all are taken. */
    int outside(long address, int port, long now) {
        long owner = owner(address, port);
        int at = find(owner);
        if (slots[at] != 0) {
            usedAt[slots[at]] = now;
            return slots[at];
        }
        int outside = free(port, now);
        if (outside > 0) {
            inside[outside] = owner;
            usedAt[outside] = now;
            slots[find(owner)] = outside;
        }
        return outside;
    }

    /** Whose outside port it is: address and port in one number, or -1. */
    long inside(int outside, long now) {
        if (inside[outside] == 0 || isSilent(outside, now)) {
            return -1;
        }
        usedAt[outside] = now;
        return inside[outside] - 1;
    }

    private boolean isSilent(int outside, long now) {
        return now - usedAt[outside] > silence;
    }

    /** The slot of an owner, or the empty one where it would be. */
    private int find(long owner) {
        int at = slot(owner);
        while (slots[at] != 0 && inside[slots[at]] != owner) {
            at = at + 1 & slots.length - 1;
        }
        return at;
    }

    /** A port that nobody has, from the wanted one on; -1 if there is none. */
    private int free(int wanted, long now) {
        int port = Math.min(Math.max(wanted, FIRST), last);
        for (int tried = FIRST; tried <= last; tried++) {
            if (inside[port] == 0) {
                return port;
            }
            if (isSilent(port, now)) {
                remove(port);
                return port;
            }
            port = port == last ? FIRST : port + 1;
        }
        return -1;
    }

    /** Frees a port, and moves up what was displaced by its slot. */
    private void remove(int outside) {
        int gap = find(inside[outside]);
        inside[outside] = 0;
        slots[gap] = 0;
        for (int at = gap + 1 & slots.length - 1; slots[at] != 0; at = at + 1 & slots.length - 1) {
            int home = slot(inside[slots[at]]);
            boolean staysReachable = (at - home & slots.length - 1) < (at - gap & slots.length - 1);
            if (!staysReachable) {
                slots[gap] = slots[at];
                slots[at] = 0;
                gap = at;
            }
        }
    }
}
