package dev.tamis.bench;

import dev.tamis.Dataplane;
import dev.tamis.Ethernet;
import dev.tamis.Handler;
import dev.tamis.Packet;
import dev.tamis.Run;
import dev.tamis.Verdict;

import java.nio.file.Path;

/**
 * The middlebox of {@code crates/cli/examples/mac_swap.rs} in Java: swaps the MAC addresses of each
 * packet of a run.
 */
public final class MacSwap implements Handler {
    @Override
    public Verdict packet(Packet packet) {
        Ethernet ethernet = packet.ethernet();
        long destination = ethernet.destination();
        ethernet.destination(ethernet.source()).source(destination);
        return Verdict.PASS;
    }

    /**
     * Runs a configuration to its end.
     *
     * @param arguments its file
     */
    public static void main(String[] arguments) {
        try (Dataplane dataplane = Dataplane.open(Path.of(arguments[0]))) {
            Run run = dataplane.start(MacSwap::new);
            System.err.println("ready");
            System.out.println(run.await().wires());
        }
    }
}
