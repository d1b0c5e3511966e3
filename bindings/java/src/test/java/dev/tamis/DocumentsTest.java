package dev.tamis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

/** Documents as the command line prints them (of {@code tamis demo}), read. */
class DocumentsTest {
    static String resource(String name) throws IOException {
        try (InputStream in = DocumentsTest.class.getResourceAsStream(name)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    @Test
    void aReplay() throws IOException {
        Replay replay = Replay.of(resource("replay.json"));
        assertEquals(287, replay.packets());
        assertEquals(
                Map.of("accept", 249L, "drop", 16L, "reject", 20L, "unknown", 2L, "skip", 0L),
                replay.verdicts());
        assertEquals(List.of(20L, 0L), List.of(replay.verdict("reject"), replay.verdict("other")));
        assertEquals(9, replay.dropReasons().get("policy"));
        Replay.RuleHits rule = replay.rules().get(3);
        assertEquals(
                new Replay.RuleHits(
                        "ip",
                        "filter",
                        "FORWARD",
                        1,
                        18,
                        "-A FORWARD -i lan0 -o wan0 -j from-office",
                        147,
                        28527,
                        0),
                rule);
    }

    @Test
    void aPath() throws IOException {
        Why why = Why.of(resource("why.json"));
        assertEquals("tcp 10.20.0.10:44020 > 198.51.100.20:80 syn", why.packet());
        assertEquals(List.of("accept", 22), List.of(why.verdict(), why.line()));
        assertEquals("-A from-office -p tcp -m multiport --dports 80,443 -j ACCEPT", why.by());
        assertEquals(5, why.rules().size());
        Why.Met last = why.rules().get(4);
        assertEquals(
                List.of("filter", "from-office", 3, "yes"),
                List.of(last.table(), last.chain(), last.number(), last.matches()));
        assertNull(last.refusedBy());
        assertEquals("-i lan0 -p udp", why.rules().get(0).text().substring(14, 28));
    }

    @Test
    void aStatus() throws IOException {
        Status status = Status.of(resource("status.json"));
        Status.Direction right = status.wires().get(0);
        assertEquals(
                List.of("left", "right", 287L, 0L, 4L),
                List.of(right.in(), right.out(), right.received(), right.made(), right.sent()));
        assertEquals(Map.of("policy", 279L, "rule", 4L), right.dropped());
        assertEquals(
                List.of(279L, 0L), List.of(right.dropped("policy"), right.dropped("middlebox")));
        assertEquals(List.of(new Status.OneWorker(0, null, "ended", null)), status.workers());
        assertEquals(1, status.program());
    }

    @Test
    void anotherDocumentIsRefused() {
        assertThrows(TamisException.class, () -> Status.of("{\"schema\": \"tamis.status/2\"}"));
        assertThrows(TamisException.class, () -> Status.of("{"));
        assertThrows(TamisException.class, () -> Replay.of("{}"));
    }

    @Test
    void optionsAreThoseOfTheCommandLine() {
        Options options =
                new Options()
                        .with("net", "a=1")
                        .with("in", "a")
                        .with("net", "b=2")
                        .with("net", "c=3");
        assertEquals(
                "{\"net\":[\"a=1\",\"b=2\",\"c=3\"],\"in\":\"a\",\"rp-filter\":true}",
                options.with("rp-filter").json());
        assertEquals("{}", new Options().json());
    }

    @Test
    void rulesAreAskedAndChanged() {
        StringBuilder asked = new StringBuilder();
        String[] answer = {
            "{\"schema\":\"tamis.apply/1\",\"revision\":2,\"new\":3,\"gone\":1,\"kept\":40,"
                    + "\"warnings\":[\"w\"]}"
        };
        Rules rules =
                new Rules(
                        line -> {
                            asked.append(line).append('\n');
                            return answer[0];
                        });
        assertEquals(
                new Rules.Applied(2, 3, 1, 40, List.of("w")), rules.apply("*filter\nCOMMIT\n"));
        rules.rollback();
        answer[0] = "{\"schema\":\"tamis.bans/1\",\"changes\":2,\"banned_ranges\":1}";
        rules.ban("192.0.2.7", "192.0.2.0/24");
        assertEquals(
                """
                {"command":"apply","text":"*filter\\nCOMMIT\\n"}
                {"command":"rollback"}
                {"command":"bans","text":"192.0.2.7\\n192.0.2.0/24","action":"ban"}
                """,
                asked.toString()
                        .replace(
                                "\"action\":\"ban\",\"text\":\"192.0.2.7\\n192.0.2.0/24\"",
                                "\"text\":\"192.0.2.7\\n192.0.2.0/24\",\"action\":\"ban\""));
        answer[0] = "{\"error\":{\"kind\":\"text\",\"what\":\"1:1: expected an address\"}}";
        RequestException refused = assertThrows(RequestException.class, () -> rules.unban("x"));
        assertEquals(
                List.of("text", "1:1: expected an address"),
                List.of(refused.kind(), refused.getMessage()));
    }

    @Test
    void addressesAreReadAndWritten() {
        assertEquals(0xC000_0201L, Address.ipv4("192.0.2.1"));
        assertEquals("192.0.2.1", Address.text(0xC000_0201L));
        assertEquals("2001:db8:0:0:0:0:0:1", Address.text(0x2001_0db8_0000_0000L, 1));
        long[] halves = Address.ipv6("2001:db8::1");
        assertEquals(List.of(0x2001_0db8_0000_0000L, 1L), List.of(halves[0], halves[1]));
        for (String wrong :
                List.of(
                        "192.0.2",
                        "192.0.2.256",
                        "192.0.2.1.1",
                        "",
                        "::1",
                        "0192.0.2.1",
                        "a.b.c.d")) {
            assertThrows(IllegalArgumentException.class, () -> Address.ipv4(wrong));
        }
        for (String wrong : List.of("192.0.2.1", ":", "g::1", "example.org", "::ffff:192.0.2.1")) {
            assertThrows(IllegalArgumentException.class, () -> Address.ipv6(wrong));
        }
    }
}
