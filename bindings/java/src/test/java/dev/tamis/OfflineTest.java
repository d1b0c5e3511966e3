package dev.tamis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/** Replays as calls: what the command line has printed for the same rules, capture and options. */
@ExtendWith(NeedsLibrary.class)
class OfflineTest {
    private static final Path RULES = Path.of("../../crates/replay/demo/rules.v4").toAbsolutePath();

    private static Options networks() {
        return new Options().with("net", "lan0=10.20.0.0/24").with("net", "wan0=0.0.0.0/0");
    }

    @Test
    void aReplayIsThatOfTheCommandLine() throws IOException {
        Replay expected = Replay.of(DocumentsTest.resource("replay.json"));
        Replay replay = Tamis.replay(List.of(RULES), List.of(LiveTest.OFFICE), networks());
        assertEquals(expected.verdicts(), replay.verdicts());
        assertEquals(expected.rules(), replay.rules());
        assertEquals(expected.dropReasons(), replay.dropReasons());
        assertEquals(287, Tamis.replay(RULES, LiveTest.OFFICE).packets());
    }

    @Test
    void aPathIsThatOfTheCommandLine() throws IOException {
        Why expected = Why.of(DocumentsTest.resource("why.json"));
        Why why = Tamis.why(List.of(RULES), LiveTest.OFFICE, 3, networks());
        assertEquals(expected.rules(), why.rules());
        assertEquals(
                List.of(expected.packet(), expected.verdict(), expected.by(), expected.line()),
                List.of(why.packet(), why.verdict(), why.by(), why.line()));
        assertEquals(why.packet(), Tamis.why(RULES, LiveTest.OFFICE, 3).packet());
    }

    @Test
    void whatIsRefusedIsSaidInItsWords() {
        Path none = Path.of("nonexistent.pcap");
        String missing =
                assertThrows(TamisException.class, () -> Tamis.replay(RULES, none)).getMessage();
        assertTrue(missing.contains("nonexistent.pcap"), missing);
        Options wrong = new Options().with("nets", "lan0=10.20.0.0/24");
        List<Path> captures = List.of(LiveTest.OFFICE);
        String option =
                assertThrows(
                                TamisException.class,
                                () -> Tamis.replay(List.of(RULES), captures, wrong))
                        .getMessage();
        assertTrue(option.contains("nets"), option);
        assertThrows(TamisException.class, () -> Tamis.why(RULES, LiveTest.OFFICE, 288));
        assertThrows(TamisException.class, () -> Tamis.why(RULES, LiveTest.OFFICE, -1));
    }

    /** The topology that threads are bound by is this machine's. */
    @Test
    void theProcessorsAreTheSystems() {
        Topology topology = Topology.read();
        assertEquals(Runtime.getRuntime().availableProcessors(), topology.processors().size());
        assertEquals(
                topology.processors().size(),
                Affinity.compact(topology).stream().distinct().count());
    }
}
