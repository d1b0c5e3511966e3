package dev.tamis.examples;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.tamis.Address;
import dev.tamis.Dataplane;
import dev.tamis.Handler;
import dev.tamis.Status;
import dev.tamis.Verdict;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The examples over the capture of {@code tamis demo}. What leaves is byte for byte what leaves by
 * tamis' own rules that do the same, without a handler's doing.
 */
class ExamplesTest {
    private static final Path OFFICE =
            Path.of("../../../crates/replay/demo/office.pcap").toAbsolutePath();

    /** Bytes of a capture without packets, and with an interface of the name that all have here. */
    private static final int SECTION = 28;

    private static final int HEADER = SECTION + 44;

    private static final String ALL = "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n";

    @TempDir Path folder;

    @BeforeEach
    void library() {
        String library = System.getProperty("tamis.library");
        boolean isThere = Files.isRegularFile(Path.of(library));
        if (!isThere) {
            System.err.println(
                    "SKIPPED: the examples: no native library (cargo build -p tamis-java)");
        }
        assumeTrue(isThere);
    }

    private Path saved(String name, byte[] capture) throws IOException {
        return Files.write(folder.resolve(name + ".pcapng"), capture);
    }

    /**
     * What leaves by the other end under rules and a handler. Captures name their port, which is
     * the same for both ends.
     */
    private byte[] run(String from, Path capture, String rules, Handler handler)
            throws IOException {
        Files.writeString(folder.resolve("rules.v4"), rules);
        Path toml = folder.resolve("live.toml");
        String[] ends =
                from.equals("left") ? new String[] {"in", "right"} : new String[] {"right", "in"};
        Files.writeString(
                toml,
                """
                [[port]]
                name = "in"
                kind = "pcap"
                file = "%s"
                [[port]]
                name = "right"
                kind = "pcap"
                out = "out.pcapng"
                [[wire]]
                ports = ["%s", "%s"]
                [rules]
                ip = "rules.v4"
                """
                        .formatted(capture, ends[0], ends[1]));
        try (Dataplane dataplane = Dataplane.open(toml)) {
            for (Status.Direction wire : dataplane.run(() -> handler).wires()) {
                assertEquals(0, wire.dropped("handler_error"));
            }
        }
        return Files.readAllBytes(folder.resolve("out.pcapng"));
    }

    private byte[] left(Path capture, String rules, Handler handler) throws IOException {
        return run("left", capture, rules, handler);
    }

    private byte[] left(String rules, Handler handler) throws IOException {
        return left(OFFICE, rules, handler);
    }

    private byte[] byRules(String... rules) throws IOException {
        return left(
                "*filter\n:FORWARD ACCEPT [0:0]\n" + String.join("\n", rules) + "\nCOMMIT\n",
                packet -> Verdict.PASS);
    }

    @Test
    void theFirewallDropsWhatRulesWould() throws IOException {
        byte[] expected =
                byRules(
                        "-A FORWARD -s 198.51.100.66 -j DROP",
                                "-A FORWARD -p tcp --dport 443 -j DROP",
                        "-A FORWARD -p udp --dport 53 -j DROP",
                                "-A FORWARD -s 10.20.0.11/32 -j DROP");
        List<String> list =
                List.of(
                        "198.51.100.66",
                        "# a comment",
                        "",
                        "tcp 443",
                        "udp 53 # names",
                        "10.20.0.11/32");
        byte[] found = left(ALL, new Firewall(list));
        assertArrayEquals(expected, found);
        assertTrue(found.length < byRules().length, "it has dropped something");
        for (String wrong :
                List.of("sctp 1", "tcp 65536", "tcp -1", "10.0.0.0/33", "x", "tcp 1 2", "tcp x")) {
            assertThrows(IllegalArgumentException.class, () -> new Firewall(List.of(wrong)), wrong);
        }
    }

    /**
     * Of what comes from inside alone: without replies, rules see beginnings of connections and
     * nothing after them.
     */
    @Test
    void theTranslationIsThatOfRules() throws IOException {
        Path inside =
                saved(
                        "inside",
                        byRules(
                                "-A FORWARD ! -s 10.20.0.0/24 -j DROP",
                                "-A FORWARD -p icmp ! --icmp-type echo-request -j DROP",
                                "-A FORWARD -p tcp ! --syn -j DROP"));
        String rules =
                ALL
                        + """
                        *nat
                        :PREROUTING ACCEPT [0:0]
                        :POSTROUTING ACCEPT [0:0]
                        -A POSTROUTING -s 10.20.0.0/24 -j SNAT --to-source 198.18.0.1
                        COMMIT
                        """;
        byte[] expected = left(inside, rules, packet -> Verdict.PASS);
        byte[] found = left(inside, ALL, new Nat("10.20.0.0/24", "198.18.0.1"));
        assertArrayEquals(expected, found);
        assertTrue(found.length > 1000);
    }

    /**
     * Replies to the outside address are, once they have come back, the replies that there were
     * without it.
     */
    @Test
    void whatComesBackIsTranslatedBack() throws IOException {
        byte[] replies =
                byRules(
                        "-A FORWARD ! -d 10.20.0.0/24 -j DROP",
                        "-A FORWARD -s 10.20.0.0/24 -j DROP",
                        "-A FORWARD -p icmp ! --icmp-type echo-reply -j DROP");
        byte[] outside =
                left(
                        saved("replies", replies),
                        ALL,
                        packet -> {
                            packet.ipv4().destination(Address.ipv4("198.18.0.1"));
                            return Verdict.PASS;
                        });
        Nat nat = new Nat("10.20.0.0/24", "198.18.0.1");
        left(ALL, nat);
        byte[] found = run("right", saved("outside", outside), ALL, nat);
        assertArrayEquals(replies, found);
        assertTrue(found.length > 10_000);
        byte[] nobodys =
                run("right", saved("outside", outside), ALL, new Nat("10.20.0.0/24", "198.18.0.1"));
        assertEquals(SECTION, nobodys.length, "nobody has sent by these ports");
    }

    @Test
    void theRecorderWritesWhatTamisWrites() throws IOException {
        String name = folder.resolve("right").toString();
        byte[] all = left(ALL, new Recorder(name, Long.MAX_VALUE, 1));
        assertArrayEquals(all, Files.readAllBytes(Path.of(name + "-0-0.pcapng")));
        byte[] expected =
                byRules(
                        "-A FORWARD -s 10.20.0.11 -p tcp --dport 22 -j ACCEPT",
                        "-A FORWARD -d 10.20.0.11 -p tcp --dport 22 -j ACCEPT",
                        "-A FORWARD -s 10.20.0.11 -p tcp --sport 22 -j ACCEPT",
                        "-A FORWARD -d 10.20.0.11 -p tcp --sport 22 -j ACCEPT",
                        "-A FORWARD -j DROP");
        left(ALL, new Recorder(name, Long.MAX_VALUE, 1, "tcp", "host", "10.20.0.11", "port", "22"));
        assertArrayEquals(expected, Files.readAllBytes(Path.of(name + "-0-0.pcapng")));
        assertThrows(IllegalArgumentException.class, () -> new Recorder("a", 1, 1, "port"));
    }

    /** Files are as long as they may be, and together they are the whole. */
    @Test
    void theRecorderRotates() throws IOException {
        String name = folder.resolve("right").toString();
        byte[] all = left(ALL, new Recorder(name, 40_000, 3));
        ByteBuffer joined = ByteBuffer.allocate(all.length);
        long oldest = Files.size(Path.of(name + "-0-1.pcapng"));
        assertTrue(oldest >= 40_000 && oldest < 45_000, oldest + " bytes");
        for (int number = 1; number <= 3; number++) {
            byte[] file = Files.readAllBytes(Path.of(name + "-0-" + number + ".pcapng"));
            joined.put(file, HEADER, file.length - HEADER);
        }
        byte[] end = java.util.Arrays.copyOfRange(all, all.length - joined.position(), all.length);
        assertArrayEquals(end, java.util.Arrays.copyOf(joined.array(), joined.position()));
        assertTrue(Files.notExists(Path.of(name + "-0-0.pcapng")), "three are kept");
        assertTrue(Files.notExists(Path.of(name + "-0-4.pcapng")));
    }

    @Test
    void flowsAreCountedAsByHand() throws IOException {
        Path table = folder.resolve("flows.csv");
        left(ALL, new FlowStatistics(table));
        Map<String, long[]> expected = flows(Files.readAllBytes(OFFICE));
        List<String> lines = Files.readAllLines(table);
        assertEquals(expected.size() + 2, lines.size());
        long before = Long.MAX_VALUE;
        for (String line : lines.subList(1, lines.size() - 1)) {
            int at = line.lastIndexOf(',', line.lastIndexOf(',') - 1);
            long[] counted = expected.get(line.substring(0, at));
            assertEquals(counted[0] + "," + counted[1], line.substring(at + 1), line);
            assertTrue(counted[1] <= before, "the largest come first");
            before = counted[1];
        }
        assertEquals("others,,,,,0,0", lines.get(lines.size() - 1));
    }

    /**
     * Packets and bytes of the flows of a capture of IPv4 over Ethernet without tags or options.
     */
    private static Map<String, long[]> flows(byte[] pcap) {
        ByteBuffer bytes = ByteBuffer.wrap(pcap).order(ByteOrder.LITTLE_ENDIAN);
        Map<String, long[]> flows = new TreeMap<>();
        for (int at = 24; at < pcap.length; at += 16 + bytes.getInt(at + 8)) {
            ByteBuffer frame = ByteBuffer.wrap(pcap, at + 16, bytes.getInt(at + 8)).slice();
            int protocol = frame.get(23);
            boolean hasPorts = protocol == 6 || protocol == 17;
            String flow =
                    String.join(
                            ",",
                            Address.text(frame.getInt(26)),
                            Address.text(frame.getInt(30)),
                            "" + protocol,
                            "" + (hasPorts ? frame.getShort(34) & 0xFFFF : 0),
                            "" + (hasPorts ? frame.getShort(36) & 0xFFFF : 0));
            long[] counted = flows.computeIfAbsent(flow, key -> new long[2]);
            counted[0]++;
            counted[1] += bytes.getInt(at + 12);
        }
        return flows;
    }
}
