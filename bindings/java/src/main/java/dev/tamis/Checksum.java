package dev.tamis;

/**
 * The Internet checksum: of bytes as a whole (RFC 1071), and as it changes with a field (RFC 1624,
 * equation 3).
 *
 * <p>Contract: a checksum that was right before a change is right after it, and one that was wrong
 * is wrong by as much.
 */
final class Checksum {
    private Checksum() {}

    /** The checksum after a 16-bit word of what it covers has changed. */
    static int update(int checksum, int before, int after) {
        return ~fold((~checksum & 0xFFFF) + (~before & 0xFFFF) + after) & 0xFFFF;
    }

    /** The checksum after two adjacent words have changed. */
    static int update32(int checksum, int before, int after) {
        int high = (~before >>> 16) + (after >>> 16);
        int low = (~before & 0xFFFF) + (after & 0xFFFF);
        return ~fold((~checksum & 0xFFFF) + high + low) & 0xFFFF;
    }

    /** The checksum after four adjacent words have changed. */
    static int update64(int checksum, long before, long after) {
        int high = update32(checksum, (int) (before >>> 32), (int) (after >>> 32));
        return update32(high, (int) before, (int) after);
    }

    /**
     * The sum of bytes that begin a word, not yet folded; an odd last byte is the high one of its
     * word.
     */
    static long sum(long address, int length) {
        long sum = 0;
        int even = length & ~1;
        for (int at = 0; at < even; at += 2) {
            sum += Net.u16(address + at);
        }
        return even == length ? sum : sum + (Net.u8(address + even) << 8);
    }

    /** The checksum of what sums up to {@code sum}. */
    static int of(long sum) {
        return ~fold(sum) & 0xFFFF;
    }

    private static int fold(long sum) {
        long folded = (sum & 0xFFFF_FFFFL) + (sum >>> 32);
        folded = (folded & 0xFFFF) + (folded >>> 16);
        folded = (folded & 0xFFFF) + (folded >>> 16);
        return (int) ((folded & 0xFFFF) + (folded >>> 16));
    }

    private static int fold(int sum) {
        int folded = (sum & 0xFFFF) + (sum >>> 16);
        return (folded & 0xFFFF) + (folded >>> 16);
    }
}
