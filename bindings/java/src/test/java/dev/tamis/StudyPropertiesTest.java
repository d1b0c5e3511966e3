package dev.tamis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The study's files of properties as configurations; the expected ones are what the command line prints. */
class StudyPropertiesTest {
    /** The file that the study's code came with. */
    private static final String STUDY = """
            rxburst=512
            txburst=16
            freeburst=16
            numcores=1
            numports=0x1
            memorychannels=3
            programid=fw
            programname=firewall
            memory=256
            blacklist=00:09.0,00:0a.0
            """;

    @Test
    void theStudysFileIsThatOfTheCommandLine() {
        String expected = """
                # From fw.properties, of firewall
                [[port]]
                name = "port0"
                kind = "dpdk"
                device = "0"
                [[port]]
                name = "back"
                kind = "loopback"
                [[wire]]
                ports = ["port0", "back"]
                [rules]
                ip = "rules.v4"
                [burst]
                rx = 512
                tx = 16
                free = 16
                [dpdk]
                eal = ["-n", "3", "-m", "256", "--file-prefix", "fw", "--block", "00:09.0", "--block", "00:0a.0"]
                """;
        assertEquals(expected, StudyProperties.toToml("fw.properties", STUDY));
    }

    @Test
    void pairsOfPortsAreWiresAndCoresAreWorkers() {
        String expected = """
                # From a
                [[port]]
                name = "port0"
                kind = "dpdk"
                device = "0"
                [[port]]
                name = "port2"
                kind = "dpdk"
                device = "2"
                [[port]]
                name = "port31"
                kind = "dpdk"
                device = "31"
                [[port]]
                name = "back"
                kind = "loopback"
                [[wire]]
                ports = ["port31", "back"]
                [[wire]]
                ports = ["port0", "port2"]
                [rules]
                ip = "rules.v4"
                [workers]
                cores = [0, 1, 2]
                [burst]
                tx = 32
                [dpdk]
                eal = []
                """;
        assertEquals(expected, StudyProperties.toToml("a", "numports : 0x80000005\nnumcores 3\ntxburst = 32  \n"));
    }

    @Test
    void whatIsNotTheStudysHasTheNearestKey() {
        Map<String, String> wrong = Map.of(
                "numports=1\nrxburts=1", "a: there is no key \"rxburts\"; did you mean \"rxburst\"?",
                "numports=1\nmemorychannel=1", "did you mean \"memorychannels\"?",
                "numports=1\nprogram=x", "did you mean \"programid\"?",
                "rxburst=1", "a: expected numports, a mask of ports such as 0x3",
                "numports=0", "a: numports: expected a mask of ports such as 0x3, found \"0\"",
                "numports=0x1ffffffff", "numports: expected a mask",
                "numports=1\nrxburst=513", "a: rxburst: expected a whole number from 1 to 512, found \"513\"",
                "numports=1\nmemory=all", "a: memory: expected a whole number from 1 to 1048576, found \"all\"",
                "numports=1\nprogramid=a b", "a: programid: expected letters, digits, - and _, found \"a b\"",
                "numports=1\nblacklist=\"x", "a: blacklist: expected PCI addresses");
        wrong.forEach((text, expected) -> {
            TamisException thrown = assertThrows(TamisException.class, () -> StudyProperties.toToml("a", text));
            assertTrue(thrown.getMessage().contains(expected), thrown.getMessage());
        });
    }

    @Test
    void pathsAreFromTheFolderOfTheFile(@TempDir Path folder) throws IOException {
        Path file = Files.writeString(folder.resolve("fw.properties"), STUDY);
        assertEquals(folder, Config.fromProperties(file).place());
        assertThrows(TamisException.class, () -> Config.fromProperties(folder.resolve("none")));
    }
}
