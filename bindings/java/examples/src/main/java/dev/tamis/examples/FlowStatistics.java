package dev.tamis.examples;

import dev.tamis.Address;
import dev.tamis.Context;
import dev.tamis.Dataplane;
import dev.tamis.Handler;
import dev.tamis.Ipv4;
import dev.tamis.Ipv6;
import dev.tamis.Packet;
import dev.tamis.Verdict;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Counts packets and bytes of each flow, passes everything, and writes a table when the run ends,
 * the largest flows first.
 *
 * <p>A flow is one direction: addresses, protocol and ports. A packet of a known flow allocates
 * nothing; so many flows are counted at most, and packets of the others all together.
 */
public final class FlowStatistics implements Handler {
    private static final int MOST = 1 << 20;

    private final Map<Flow, Flow> flows = new HashMap<>();
    private final Flow others = new Flow();
    private final Path table;
    private Flow probe = new Flow();
    private int worker;

    /** A flow, and what was counted of it. */
    private static final class Flow {
        private boolean isIpv6;
        private long sourceHigh;
        private long sourceLow;
        private long destinationHigh;
        private long destinationLow;
        private int protocol;
        private int ports;
        private long packets;
        private long bytes;

        /** Whether it has an IP header, and is that packet's flow from now on. */
        boolean isOf(Packet packet) {
            if (packet.isIpv4()) {
                Ipv4 ipv4 = packet.ipv4();
                set(false, 0, ipv4.source(), 0, ipv4.destination());
            } else if (packet.isIpv6()) {
                Ipv6 ipv6 = packet.ipv6();
                set(
                        true,
                        ipv6.sourceHigh(),
                        ipv6.sourceLow(),
                        ipv6.destinationHigh(),
                        ipv6.destinationLow());
            } else {
                return false;
            }
            protocol = packet.protocol();
            ports =
                    packet.isTcp() || packet.isUdp()
                            ? (int) packet.u32(packet.transportOffset())
                            : 0;
            return true;
        }

        private void set(
                boolean six,
                long sourceHigh,
                long sourceLow,
                long destinationHigh,
                long destinationLow) {
            this.isIpv6 = six;
            this.sourceHigh = sourceHigh;
            this.sourceLow = sourceLow;
            this.destinationHigh = destinationHigh;
            this.destinationLow = destinationLow;
        }

        void count(Packet packet) {
            packets++;
            bytes += packet.wireLength();
        }

        @Override
        public int hashCode() {
            long addresses =
                    sourceLow * 31 + destinationLow + (sourceHigh * 31 + destinationHigh) * 31;
            return Long.hashCode((addresses + ports + protocol) * 0x9E37_79B9_7F4A_7C15L);
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Flow flow
                    && isIpv6 == flow.isIpv6
                    && sourceHigh == flow.sourceHigh
                    && sourceLow == flow.sourceLow
                    && destinationHigh == flow.destinationHigh
                    && destinationLow == flow.destinationLow
                    && protocol == flow.protocol
                    && ports == flow.ports;
        }

        /** A line of the table: source, destination, protocol, both ports, packets, bytes. */
        String line() {
            String source = isIpv6 ? Address.text(sourceHigh, sourceLow) : Address.text(sourceLow);
            String destination =
                    isIpv6
                            ? Address.text(destinationHigh, destinationLow)
                            : Address.text(destinationLow);
            return String.join(
                    ",",
                    source,
                    destination,
                    "" + protocol,
                    "" + (ports >>> 16),
                    "" + (ports & 0xFFFF),
                    "" + packets,
                    "" + bytes);
        }
    }

    /**
     * Statistics.
     *
     * @param table the file that is written at the end; of workers but the first with their number
     *     after it
     */
    public FlowStatistics(Path table) {
        this.table = table;
    }

    @Override
    public void init(Context context) {
        worker = context.worker();
    }

    @Override
    public Verdict packet(Packet packet) {
        if (!probe.isOf(packet)) {
            others.count(packet);
            return Verdict.PASS;
        }
        Flow flow = flows.get(probe);
        if (flow == null && flows.size() < MOST) {
            flow = probe;
            flows.put(flow, flow);
            probe = new Flow();
        }
        (flow == null ? others : flow).count(packet);
        return Verdict.PASS;
    }

    @Override
    public void close() throws IOException {
        List<Flow> sorted = new ArrayList<>(flows.values());
        sorted.sort(
                Comparator.comparingLong((Flow flow) -> flow.bytes)
                        .reversed()
                        .thenComparing(Flow::line));
        List<String> lines = new ArrayList<>();
        lines.add("source,destination,protocol,source_port,destination_port,packets,bytes");
        sorted.forEach(flow -> lines.add(flow.line()));
        lines.add("others,,,,," + others.packets + "," + others.bytes);
        Files.write(worker == 0 ? table : Path.of(table + "." + worker), lines);
    }

    /**
     * Runs it.
     *
     * @param arguments the configuration of the run, and the table's file
     */
    public static void main(String[] arguments) {
        Arguments.expect(arguments, 2, "FlowStatistics LIVE.toml TABLE.csv");
        try (Dataplane dataplane = Dataplane.open(Path.of(arguments[0]))) {
            Arguments.print(dataplane.run(() -> new FlowStatistics(Path.of(arguments[1]))));
        }
    }
}
