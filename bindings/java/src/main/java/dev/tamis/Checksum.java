package dev.tamis;

/**
 * The Internet checksum: of bytes as a whole (RFC 1071), and as it changes with a field (RFC 1624,
 * equation 3).
 *
 * <p>Contract: a checksum that was right before a change is right after it, and one that was wrong
 * is wrong by as much. What updates one takes its three numbers in network byte order or all of
 * them in the host's, and answers in the same: a sum with its carry brought round is the same sum
 * in either (RFC 1071, 2).
 */
final class Checksum {
    private Checksum() {}

    /** Writes a 16-bit word, and updates the checksum that covers it. */
    static void put16(long address, int value, long checksum) {
        int before = Net.raw16(address);
        int after = Net.swap16(value);
        Net.putRaw16(address, after);
        Net.putRaw16(checksum, update(Net.raw16(checksum), before, after));
    }

    /** Writes two adjacent words, and updates the checksum that covers them. */
    static void put32(long address, int value, long checksum) {
        int before = Net.raw32(address);
        int after = Net.swap32(value);
        Net.putRaw32(address, after);
        Net.putRaw16(checksum, update32(Net.raw16(checksum), before, after));
    }

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

    /** The halves added with the carry of their sum, which is what the upper half comes to here. */
    private static int fold(int sum) {
        return (sum + Integer.rotateLeft(sum, 16)) >>> 16;
    }
}
