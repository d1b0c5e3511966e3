package dev.tamis.bench;

import dev.tamis.Handler;
import dev.tamis.Ipv4;
import dev.tamis.Packet;
import dev.tamis.Tcp;
import dev.tamis.Udp;
import dev.tamis.Verdict;

/** The realistic job as a middlebox, as its author would write it: the views keep both checksums. */
final class NatHandler implements Handler {
    @Override
    public Verdict packet(Packet packet) {
        if (!packet.isIpv4()) {
            return Verdict.PASS;
        }
        if (packet.isTcp()) {
            return tcp(packet.ipv4(), packet.tcp());
        }
        return packet.isUdp() ? udp(packet.ipv4(), packet.udp()) : Verdict.PASS;
    }

    private static Verdict tcp(Ipv4 ip, Tcp tcp) {
        int port = port(ip, tcp.sourcePort(), tcp.destinationPort());
        if (port < 0) {
            return Verdict.DROP;
        }
        rewrite(ip);
        tcp.sourcePort(port);
        return Verdict.PASS;
    }

    private static Verdict udp(Ipv4 ip, Udp udp) {
        int port = port(ip, udp.sourcePort(), udp.destinationPort());
        if (port < 0) {
            return Verdict.DROP;
        }
        rewrite(ip);
        udp.sourcePort(port);
        return Verdict.PASS;
    }

    /** The port that the packet leaves by, or -1 if it does not leave. */
    private static int port(Ipv4 ip, int source, int destination) {
        if (ip.ttl() <= 1 || Nat.isRefused(ip.destination(), ip.protocol(), destination)) {
            return -1;
        }
        return Nat.portFor((int) ip.source(), (int) ip.destination(), source, destination);
    }

    private static void rewrite(Ipv4 ip) {
        ip.ttl(ip.ttl() - 1).source(Nat.SOURCE);
    }
}
