package dev.tamis.examples;

import dev.tamis.Context;
import dev.tamis.Dataplane;
import dev.tamis.Handler;
import dev.tamis.Packet;
import dev.tamis.Verdict;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * A firewall by a list of blocked sources and services.
 *
 * <p>A line of the list is a network ({@code 192.0.2.0/24}), whose packets are dropped, or a
 * service ({@code tcp 25}, {@code udp 53}), packets to which are dropped. {@code #} begins a
 * comment. Fragments but the first have no service and pass: the first one is dropped, so the
 * others come to nothing.
 */
public final class Firewall implements Handler {
    private static final int PORTS = 1 << 16;

    private final List<Prefix> networks = new ArrayList<>();
    private final boolean[] tcp = new boolean[PORTS];
    private final boolean[] udp = new boolean[PORTS];

    /** The networks again: an array is gone through without an iterator. */
    private Prefix[] blocked = {};

    /**
     * A firewall by the lines of a list.
     *
     * @param lines as above
     * @throws IllegalArgumentException if one of them is no such line
     */
    public Firewall(List<String> lines) {
        for (String line : lines) {
            String text = line.replaceFirst("#.*", "").strip();
            if (!text.isEmpty()) {
                block(text);
            }
        }
    }

    private void block(String text) {
        String[] words = text.split("\\s+");
        if (words.length == 1) {
            networks.add(Prefix.of(words[0]));
            return;
        }
        int port = Integer.parseInt(words[1]);
        if (words.length != 2 || port < 0 || port >= PORTS || !words[0].matches("tcp|udp")) {
            throw new IllegalArgumentException(
                    "expected a network, or tcp or udp and a port, found \"" + text + "\"");
        }
        (words[0].equals("tcp") ? tcp : udp)[port] = true;
    }

    @Override
    public void init(Context context) {
        blocked = networks.toArray(blocked);
    }

    @Override
    public Verdict packet(Packet packet) {
        if (packet.isIpv4() && isBlocked(packet.ipv4().source())) {
            return Verdict.DROP;
        }
        boolean isServed =
                packet.isTcp() && tcp[packet.tcp().destinationPort()]
                        || packet.isUdp() && udp[packet.udp().destinationPort()];
        return isServed ? Verdict.DROP : Verdict.PASS;
    }

    private boolean isBlocked(long source) {
        for (Prefix network : blocked) {
            if (network.has(source)) {
                return true;
            }
        }
        return false;
    }

    /**
     * Runs it.
     *
     * @param arguments the configuration of the run, and the list
     * @throws IOException if the list cannot be read
     */
    public static void main(String[] arguments) throws IOException {
        Arguments.expect(arguments, 2, "Firewall LIVE.toml LIST");
        List<String> lines = Files.readAllLines(Path.of(arguments[1]));
        try (Dataplane dataplane = Dataplane.open(Path.of(arguments[0]))) {
            Arguments.print(dataplane.run(() -> new Firewall(lines)));
        }
    }
}
