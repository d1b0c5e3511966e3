package dev.tamis;

/**
 * Checksums of a packet, computed from all that they cover: RFC 791, 768, 9293, 792, 4443, and RFC
 * 8200, 8.1.
 */
final class FullChecksum {
    private static final int ICMP = 1;
    private static final int TCP = 6;
    private static final int UDP = 17;
    private static final int ICMPV6 = 58;

    private FullChecksum() {}

    /** Computes each checksum whose bytes are in memory. */
    static void fix(Packet packet) {
        if (packet.isIpv4()) {
            header(packet, packet.networkOffset(), packet.ipv4().headerLength());
        }
        if (packet.isFragment() || packet.transportOffset() < 0) {
            return;
        }
        int length = transportLength(packet);
        if (length <= 0 || packet.transportOffset() > packet.length() - length) {
            return;
        }
        switch (packet.protocol()) {
            case TCP -> transport(packet, Tcp.LENGTH, Tcp.CHECKSUM, length, pseudo(packet, length));
            case UDP -> transport(packet, Udp.LENGTH, Udp.CHECKSUM, length, pseudo(packet, length));
            case ICMPV6 ->
                    transport(packet, Icmp.LENGTH, Icmp.CHECKSUM, length, pseudo(packet, length));
            case ICMP -> transport(packet, Icmp.LENGTH, Icmp.CHECKSUM, length, 0);
            default -> {}
        }
    }

    private static void header(Packet packet, int offset, int length) {
        if (length >= Ipv4.LENGTH && length <= packet.length() - offset) {
            packet.u16(offset + 10, 0);
            packet.u16(offset + 10, Checksum.of(Checksum.sum(packet.at(offset, length), length)));
        }
    }

    /**
     * Bytes from the transport header on, as the IP header says; negative where it says nothing
     * that can be.
     */
    private static int transportLength(Packet packet) {
        int before = packet.transportOffset() - packet.networkOffset();
        if (packet.isIpv4()) {
            return packet.ipv4().totalLength() - before;
        }
        return packet.isIpv6() ? Ipv6.LENGTH + packet.ipv6().payloadLength() - before : -1;
    }

    private static long pseudo(Packet packet, int length) {
        int addresses = packet.isIpv4() ? 8 : 32;
        int at = packet.networkOffset() + (packet.isIpv4() ? 12 : 8);
        return Checksum.sum(packet.at(at, addresses), addresses) + packet.protocol() + length;
    }

    private static void transport(Packet packet, int least, int field, int length, long pseudo) {
        int offset = packet.transportOffset();
        boolean isUdp = packet.protocol() == UDP;
        if (length < least || isUdp && packet.u16(offset + field) == 0) {
            return;
        }
        packet.u16(offset + field, 0);
        int checksum = Checksum.of(Checksum.sum(packet.at(offset, length), length) + pseudo);
        packet.u16(offset + field, isUdp ? Udp.shown(checksum) : checksum);
    }
}
