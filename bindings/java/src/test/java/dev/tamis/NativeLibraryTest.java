package dev.tamis;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;

/** How the native library is found, extracted and refused. */
class NativeLibraryTest {
    private static final byte[] LIBRARY = {0x7F, 'E', 'L', 'F'};

    private static String message(org.junit.jupiter.api.function.Executable what) {
        return assertThrows(TamisException.class, what).getMessage();
    }

    @Test
    void itIsExtractedOnceForEachContent(@TempDir Path folder) throws IOException {
        Path own = NativeLibrary.own(folder.resolve("a/tamis"));
        assertEquals(
                "rwx------", PosixFilePermissions.toString(Files.getPosixFilePermissions(own)));
        Path file = NativeLibrary.extract(LIBRARY, own);
        assertEquals(file, NativeLibrary.extract(LIBRARY, own));
        Path other = NativeLibrary.extract(new byte[] {1}, NativeLibrary.own(own));
        assertArrayEquals(LIBRARY, Files.readAllBytes(file));
        assertArrayEquals(new byte[] {1}, Files.readAllBytes(other));
        try (var files = Files.list(own)) {
            assertEquals(2, files.count(), "nothing else is left");
        }
    }

    @Test
    void oneThatWasChangedIsReplaced(@TempDir Path folder) throws IOException {
        Path own = NativeLibrary.own(folder.resolve("tamis"));
        Path file = NativeLibrary.extract(LIBRARY, own);
        Files.write(file, new byte[] {9, 9});
        assertEquals(file, NativeLibrary.extract(LIBRARY, own));
        assertArrayEquals(LIBRARY, Files.readAllBytes(file));
    }

    @Test
    void aFolderOfOthersIsRefused(@TempDir Path folder) throws IOException {
        Path open = Files.createDirectory(folder.resolve("tamis"));
        Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
        assertThrows(IOException.class, () -> NativeLibrary.own(open));
        Path link =
                Files.createSymbolicLink(
                        folder.resolve("link"), NativeLibrary.own(folder.resolve("mine")));
        assertThrows(IOException.class, () -> NativeLibrary.own(link));
    }

    @Test
    void aFileThatIsNotThereIsNamed() {
        assertEquals(
                "tamis.library: no such file: /nonexistent/x.so",
                message(() -> NativeLibrary.find("/nonexistent/x.so", "linux-x86_64")));
        String missing = message(() -> NativeLibrary.find(null, "plan9-mips"));
        assertTrue(
                missing.startsWith("this jar has no native library for plan9-mips (it has "),
                missing);
        assertTrue(missing.contains("tamis.library"), missing);
    }

    /** What the dynamic linker says becomes what to do. */
    @Test
    void aFileThatCannotBeLoadedSaysWhy(@TempDir Path folder) throws IOException {
        Path file = Files.write(folder.resolve("x.so"), new byte[4096]);
        String message = message(() -> NativeLibrary.loadFrom(file));
        assertTrue(
                message.contains(file.toString()) && message.contains("another architecture"),
                message);
        String noexec =
                "libx.so: failed to map segment from shared object: Operation not permitted";
        assertTrue(
                NativeLibrary.hint(noexec).contains("noexec")
                        && NativeLibrary.hint(noexec).contains("tamis.library"));
        assertEquals("", NativeLibrary.hint("undefined symbol: x"));
    }

    @Test
    void anotherLayoutIsRefused() {
        long[] layout = {48, 256, 0, 8, 16, 20, 24, 26, 28, 30, 32, 34, 35, 36, 38, 39, 40};
        Descriptor.check(1, layout);
        assertTrue(message(() -> Descriptor.check(2, layout)).contains("layout version 2"));
        for (int i : List.of(0, 2, 9, 16)) {
            long[] other = layout.clone();
            other[i]++;
            assertTrue(
                    message(() -> Descriptor.check(1, other))
                            .contains("of a descriptor, this jar " + layout[i]));
        }
    }
}
