package dev.tamis.examples;

import dev.tamis.Address;
import dev.tamis.Context;
import dev.tamis.Dataplane;
import dev.tamis.Handler;
import dev.tamis.Ipv4;
import dev.tamis.Packet;
import dev.tamis.Tcp;
import dev.tamis.Udp;
import dev.tamis.Verdict;

import java.nio.file.Path;

/**
 * Translates the source of what an inside network sends to one outside address, and the destination
 * of what comes back.
 *
 * <p>The first port of each wire is the inside. TCP, UDP and ICMP echoes are translated, a port as
 * it is where it is free; a mapping that was silent for five minutes may be given to another. What
 * comes from inside without being translatable, and what comes back to a port that nobody has, is
 * dropped. All packets need to be one worker's: {@code count = 1}.
 */
public final class Nat implements Handler {
    private static final long SILENCE = 300_000_000_000L;
    private static final int ECHO_REPLY = 0;
    private static final int ECHO = 8;

    private final Prefix inside;
    private final long outside;
    private final PortTable tcp = new PortTable(SILENCE, 0xFFFF);
    private final PortTable udp = new PortTable(SILENCE, 0xFFFF);
    private final PortTable icmp = new PortTable(SILENCE, 0xFFFF);

    /**
     * A translation.
     *
     * @param inside the inside network, such as {@code 10.0.0.0/8}
     * @param outside the address that it has outside
     */
    public Nat(String inside, String outside) {
        this.inside = Prefix.of(inside);
        this.outside = Address.ipv4(outside);
    }

    @Override
    public void init(Context context) {
        if (context.workers() > 1) {
            throw new IllegalArgumentException(
                    "expected one worker ([workers] count = 1), found " + context.workers());
        }
    }

    @Override
    public Verdict packet(Packet packet) {
        if (!packet.isIpv4()) {
            return Verdict.PASS;
        }
        Ipv4 ipv4 = packet.ipv4();
        if (packet.from() == 0) {
            return inside.has(ipv4.source()) ? leave(packet, ipv4) : Verdict.PASS;
        }
        return ipv4.destination() == outside ? comeBack(packet, ipv4) : Verdict.PASS;
    }

    private Verdict leave(Packet packet, Ipv4 ipv4) {
        PortTable table = table(packet, ECHO);
        int given =
                table == null
                        ? -1
                        : table.outside(ipv4.source(), port(packet, true), packet.time());
        if (given < 0) {
            return Verdict.DROP;
        }
        ipv4.source(outside);
        setPort(packet, true, given);
        return Verdict.PASS;
    }

    private Verdict comeBack(Packet packet, Ipv4 ipv4) {
        PortTable table = table(packet, ECHO_REPLY);
        long owner = table == null ? -1 : table.inside(port(packet, false), packet.time());
        if (owner < 0) {
            return Verdict.DROP;
        }
        ipv4.destination(owner >>> 16);
        setPort(packet, false, (int) (owner & 0xFFFF));
        return Verdict.PASS;
    }

    /**
     * The mappings of its protocol, or null if it is not translated; of ICMP only messages of that
     * type are.
     */
    private PortTable table(Packet packet, int echo) {
        if (packet.isTcp()) {
            return tcp;
        }
        if (packet.isUdp()) {
            return udp;
        }
        return packet.isIcmp() && packet.icmp().type() == echo ? icmp : null;
    }

    /** The source or destination port; of an echo its identifier. */
    private static int port(Packet packet, boolean isSource) {
        if (packet.isTcp()) {
            return isSource ? packet.tcp().sourcePort() : packet.tcp().destinationPort();
        }
        if (packet.isUdp()) {
            return isSource ? packet.udp().sourcePort() : packet.udp().destinationPort();
        }
        return packet.icmp().identifier();
    }

    private static void setPort(Packet packet, boolean isSource, int port) {
        if (packet.isIcmp()) {
            packet.icmp().identifier(port);
        } else if (packet.isTcp()) {
            setPort(packet.tcp(), isSource, port);
        } else {
            setPort(packet.udp(), isSource, port);
        }
    }

    private static void setPort(Tcp tcp, boolean isSource, int port) {
        if (isSource) {
            tcp.sourcePort(port);
        } else {
            tcp.destinationPort(port);
        }
    }

    private static void setPort(Udp udp, boolean isSource, int port) {
        if (isSource) {
            udp.sourcePort(port);
        } else {
            udp.destinationPort(port);
        }
    }

    /**
     * Runs it.
     *
     * @param arguments the configuration of the run, the inside network, and the outside address
     */
    public static void main(String[] arguments) {
        Arguments.expect(arguments, 3, "Nat LIVE.toml INSIDE/BITS OUTSIDE");
        try (Dataplane dataplane = Dataplane.open(Path.of(arguments[0]))) {
            Arguments.print(dataplane.run(() -> new Nat(arguments[1], arguments[2])));
        }
    }
}
