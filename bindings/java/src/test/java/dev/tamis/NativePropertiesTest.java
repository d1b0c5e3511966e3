package dev.tamis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** The study's files of properties as configurations, which the native library reads. */
@ExtendWith(NeedsLibrary.class)
class NativePropertiesTest {
    /** The file that the study's code came with. */
    private static final String STUDY =
            """
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

    @TempDir Path folder;

    private Config of(String text) throws IOException {
        return Config.fromProperties(Files.writeString(folder.resolve("fw.properties"), text));
    }

    @Test
    void theStudysFileIsAConfigurationInItsFolder() throws IOException {
        Config config = of(STUDY);
        assertEquals(folder, config.place());
        String first = config.toml().lines().findFirst().orElseThrow();
        assertEquals("# From " + folder.resolve("fw.properties") + ", of firewall", first);
        String burst = "[burst]\nrx = 512\ntx = 16\nfree = 16\n";
        assertTrue(config.toml().contains(burst), config.toml());
    }

    @Test
    void whatIsNotTheStudysIsRefusedInTheWordsOfTheCommandLine() {
        String message =
                assertThrows(TamisException.class, () -> of("numports=1\nrxburts=1")).getMessage();
        assertTrue(message.endsWith("found \"rxburts\" (line 2)"), message);
        assertThrows(TamisException.class, () -> Config.fromProperties(folder.resolve("none")));
    }
}
