package dev.tamis.examples;

import dev.tamis.Address;
import dev.tamis.Packet;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;

/**
 * Words that a packet has to meet, all of them: {@code tcp}, {@code udp}, {@code icmp}, {@code host
 * 192.0.2.7}, {@code port 53}.
 */
final class Filter {
    private final Predicate<Packet>[] tests;

    @SuppressWarnings({"unchecked", "rawtypes"})
    private Filter(List<Predicate<Packet>> tests) {
        this.tests = tests.toArray(new Predicate[0]);
    }

    /** A filter of words; none let all packets through. */
    static Filter of(List<String> words) {
        List<Predicate<Packet>> tests = new ArrayList<>();
        for (int i = 0; i < words.size(); i++) {
            switch (words.get(i)) {
                case "tcp" -> tests.add(Packet::isTcp);
                case "udp" -> tests.add(Packet::isUdp);
                case "icmp" -> tests.add(Packet::isIcmp);
                case "host" -> tests.add(host(Address.ipv4(after(words, i++))));
                case "port" -> tests.add(port(Integer.parseInt(after(words, i++))));
                default ->
                        throw new IllegalArgumentException(
                                "expected tcp, udp, icmp, host or port, found \""
                                        + words.get(i)
                                        + "\"");
            }
        }
        return new Filter(tests);
    }

    private static String after(List<String> words, int at) {
        if (at + 1 == words.size()) {
            throw new IllegalArgumentException(
                    "expected something after \"" + words.get(at) + "\"");
        }
        return words.get(at + 1);
    }

    private static Predicate<Packet> host(long address) {
        return packet ->
                packet.isIpv4()
                        && (packet.ipv4().source() == address
                                || packet.ipv4().destination() == address);
    }

    private static Predicate<Packet> port(int port) {
        return packet ->
                packet.isTcp()
                                && (packet.tcp().sourcePort() == port
                                        || packet.tcp().destinationPort() == port)
                        || packet.isUdp()
                                && (packet.udp().sourcePort() == port
                                        || packet.udp().destinationPort() == port);
    }

    boolean matches(Packet packet) {
        for (Predicate<Packet> test : tests) {
            if (!test.test(packet)) {
                return false;
            }
        }
        return true;
    }
}
