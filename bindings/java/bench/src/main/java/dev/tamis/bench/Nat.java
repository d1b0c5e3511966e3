package dev.tamis.bench;

/**
 * The realistic job: filter by the 5-tuple, rewrite source and port, lower the time to live, correct both checksums.
 *
 * <p>Contract: the same as {@code nat.rs}, line by line. Only whole TCP and UDP over IPv4 is touched; everything else passes
 * as it is. Checksums are updated, not computed anew (RFC 1624, equation 3).
 */
final class Nat {
    static final byte PASS = 0;
    static final byte DROP = 1;

    private static final int NONE = 0xFFFF;
    private static final int TCP = 6;
    private static final int UDP = 17;

    /** The source that everything gets: 203.0.113.1. */
    static final long SOURCE = 0xCB00_7101L;

    /** Nothing goes there: 10.66.0.0/16. */
    private static final long REFUSED = 0x0A42;

    private static final int TELNET = 23;

    private Nat() {}

    /** One frame; its verdict. */
    static byte handle(FrameView frame) {
        int ip = frame.network();
        int l4 = frame.transport();
        int protocol = frame.protocol();
        int header = protocol == TCP ? 20 : 8;
        boolean isWhole = ip != NONE && ip + 20 <= frame.length() && l4 + header <= frame.length();
        boolean isOurs = protocol == TCP || protocol == UDP;
        if (frame.etherType() != 0x0800 || !isOurs || l4 == NONE || !isWhole) {
            return PASS;
        }
        long source = frame.u32(ip + 12);
        long destination = frame.u32(ip + 16);
        int sourcePort = frame.u16(l4);
        int destinationPort = frame.u16(l4 + 2);
        if (frame.u8(ip + 8) <= 1 || isRefused(destination, protocol, destinationPort)) {
            return DROP;
        }
        int port = portFor((int) source, (int) destination, sourcePort, destinationPort);
        rewriteNetwork(frame, ip, source);
        rewriteTransport(frame, l4, protocol, source, sourcePort, port);
        return PASS;
    }

    static boolean isRefused(long destination, int protocol, int port) {
        return destination >>> 16 == REFUSED || port == TELNET || protocol == UDP && port >= 135 && port <= 139;
    }

    /** The port that a flow leaves by: a hash of what it is, from 1024 on. */
    static int portFor(int source, int destination, int sourcePort, int destinationPort) {
        int ports = sourcePort << 16 | destinationPort;
        int mixed = (source ^ Integer.rotateLeft(destination, 13) ^ ports) * 0x9E37_79B1;
        return 1024 + (mixed >>> 17);
    }

    /** Source and time to live, and the header's checksum. */
    private static void rewriteNetwork(FrameView frame, int ip, long source) {
        int lifetime = frame.u16(ip + 8);
        int checksum = update(frame.u16(ip + 10), lifetime, lifetime - 0x100);
        frame.u16(ip + 8, lifetime - 0x100);
        frame.u16(ip + 10, update32(checksum, source, SOURCE));
        frame.u32(ip + 12, SOURCE);
    }

    /** The port, and a checksum that covers it and the addresses. A UDP checksum of 0 says that there is none. */
    private static void rewriteTransport(FrameView frame, int l4, int protocol, long source, int old, int port) {
        int at = l4 + (protocol == TCP ? 16 : 6);
        int before = frame.u16(at);
        frame.u16(l4, port);
        if (protocol == UDP && before == 0) {
            return;
        }
        int checksum = update(update32(before, source, SOURCE), old, port);
        frame.u16(at, protocol == UDP && checksum == 0 ? 0xFFFF : checksum);
    }

    private static int update32(int checksum, long old, long changed) {
        int high = update(checksum, (int) (old >>> 16), (int) (changed >>> 16));
        return update(high, (int) old & 0xFFFF, (int) changed & 0xFFFF);
    }

    private static int update(int checksum, int old, int changed) {
        int sum = (~checksum & 0xFFFF) + (~old & 0xFFFF) + changed;
        sum = (sum & 0xFFFF) + (sum >>> 16);
        sum = (sum & 0xFFFF) + (sum >>> 16);
        return ~sum & 0xFFFF;
    }
}
