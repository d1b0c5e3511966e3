package dev.tamis;

import java.nio.ByteBuffer;
import java.util.Random;

/** Frames made for tests, and their checksums by the slow way: over a copy of what they cover. */
final class Crafted {
    static final int ICMP = 1;
    static final int TCP = 6;
    static final int UDP = 17;
    static final int ICMPV6 = 58;

    private Crafted() {}

    /**
     * An IPv4 packet over Ethernet, with so many tags and bytes of options and payload; checksums
     * are right.
     */
    static byte[] ipv4(Random random, int protocol, int tags, int options, int payload) {
        int network = 14 + 4 * tags;
        byte[] frame = filled(random, network + 20 + options + header(protocol) + payload);
        ethernet(frame, tags, 0x0800);
        ByteBuffer bytes = ByteBuffer.wrap(frame);
        bytes.put(network, (byte) (0x40 | (20 + options) / 4));
        bytes.putShort(network + 2, (short) (frame.length - network));
        bytes.putShort(network + 6, (short) 0);
        bytes.put(network + 9, (byte) protocol);
        transport(bytes, protocol, network + 20 + options, frame.length - network - 20 - options);
        return right(frame);
    }

    /** An IPv6 packet over Ethernet; checksums are right. */
    static byte[] ipv6(Random random, int protocol, int payload) {
        byte[] frame = filled(random, 14 + 40 + header(protocol) + payload);
        ethernet(frame, 0, 0x86DD);
        ByteBuffer bytes = ByteBuffer.wrap(frame);
        bytes.put(14, (byte) (0x60 | frame[14] & 0xF));
        bytes.putShort(18, (short) (frame.length - 54));
        bytes.put(20, (byte) protocol);
        transport(bytes, protocol, 54, frame.length - 54);
        return right(frame);
    }

    /** An ARP request. */
    static byte[] arp(Random random) {
        byte[] frame = filled(random, 14 + 28);
        ethernet(frame, 0, 0x0806);
        ByteBuffer.wrap(frame).putLong(14, 0x0001_0800_0604_0001L);
        return frame;
    }

    private static byte[] filled(Random random, int length) {
        byte[] frame = new byte[length];
        random.nextBytes(frame);
        return frame;
    }

    private static int header(int protocol) {
        return protocol == TCP ? 20 : 8;
    }

    private static void ethernet(byte[] frame, int tags, int type) {
        ByteBuffer bytes = ByteBuffer.wrap(frame);
        for (int tag = 0; tag < tags; tag++) {
            bytes.putShort(12 + 4 * tag, (short) (tag == 0 && tags > 1 ? 0x88A8 : 0x8100));
        }
        bytes.putShort(12 + 4 * tags, (short) type);
    }

    private static void transport(ByteBuffer bytes, int protocol, int at, int length) {
        if (protocol == TCP) {
            bytes.put(at + 12, (byte) 0x50);
        } else if (protocol == UDP) {
            bytes.putShort(at + 4, (short) length);
            bytes.putShort(at + 6, (short) 1);
        }
    }

    /** The frame with the checksums that it should have; one of UDP that is 0 stays. */
    static byte[] right(byte[] frame) {
        byte[] right = frame.clone();
        ByteBuffer bytes = ByteBuffer.wrap(right);
        Frames.Offsets offsets = Frames.Offsets.of(frame);
        int network = offsets.network();
        boolean isIpv4 = offsets.etherType() == 0x0800;
        if (isIpv4) {
            bytes.putShort(network + 10, (short) 0);
            bytes.putShort(
                    network + 10, (short) checksum(right, network, (frame[network] & 0xF) * 4, 0));
        }
        int transport = offsets.transport();
        int field =
                transport
                        + switch (offsets.protocol()) {
                            case TCP -> 16;
                            case UDP -> 6;
                            default -> 2;
                        };
        boolean isUdp = offsets.protocol() == UDP;
        if (offsets.flags() != 0 || isUdp && bytes.getShort(field) == 0) {
            return right;
        }
        int length = frame.length - transport;
        int pseudo = offsets.protocol() == ICMP ? 0 : offsets.protocol() + length;
        for (int i = network + (isIpv4 ? 12 : 8);
                pseudo != 0 && i < network + (isIpv4 ? 20 : 40);
                i += 2) {
            pseudo += bytes.getShort(i) & 0xFFFF;
        }
        bytes.putShort(field, (short) 0);
        int checksum = checksum(right, transport, length, pseudo);
        bytes.putShort(field, (short) (isUdp && checksum == 0 ? 0xFFFF : checksum));
        return right;
    }

    private static int checksum(byte[] of, int from, int length, int more) {
        long sum = more;
        for (int i = 0; i < length; i++) {
            sum += (long) (of[from + i] & 0xFF) << (i % 2 == 0 ? 8 : 0);
        }
        while (sum > 0xFFFF) {
            sum = (sum & 0xFFFF) + (sum >>> 16);
        }
        return (int) ~sum & 0xFFFF;
    }
}
