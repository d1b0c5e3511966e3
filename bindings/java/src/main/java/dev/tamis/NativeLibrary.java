package dev.tamis;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/**
 * Finds and loads the native library: the file that the property {@code tamis.library} names, or
 * the one inside the jar.
 *
 * <p>Contract: what is inside the jar is extracted once for each content to a folder that is the
 * user's alone (mode 0700), under {@code XDG_CACHE_HOME}, {@code ~/.cache} or the folder of
 * temporary files, under its SHA-256. It appears whole or not at all, and one whose bytes are not
 * those of the jar is replaced. A library of another layout of descriptors is refused. In a JVM
 * that tamis has started there is none to find ({@link #registered}).
 */
final class NativeLibrary {
    /** The property with a library's path. */
    static final String PROPERTY = "tamis.library";

    /** Platforms whose libraries a jar may have, as named in it. */
    static final List<String> PLATFORMS = List.of("linux-x86_64", "linux-aarch64");

    private static final String FILE = "libtamis_java.so";
    private static final Set<PosixFilePermission> PRIVATE =
            PosixFilePermissions.fromString("rwx------");

    private static boolean isLoaded;

    private NativeLibrary() {}

    /** Loads the library, unless it is there, and checks its layout. */
    static synchronized void load() {
        if (!isLoaded) {
            Path file = find(System.getProperty(PROPERTY), platform());
            loadFrom(file);
            checkLayout(file.toString());
            isLoaded = true;
        }
    }

    /**
     * Loads none: tamis, which has started this JVM and calls this, has registered its own
     * functions.
     */
    static synchronized void registered() {
        checkLayout("tamis");
        isLoaded = true;
    }

    private static void checkLayout(String file) {
        long[] layout = new long[Descriptor.entries()];
        try {
            Descriptor.check(Native.layout(layout), layout);
        } catch (UnsatisfiedLinkError e) {
            throw new TamisException(file + " is no library of tamis for Java", e);
        }
    }

    /** This machine, as the jar names it. */
    static String platform() {
        String os = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String arch = System.getProperty("os.arch");
        return os + "-" + ("amd64".equals(arch) ? "x86_64" : arch);
    }

    /** The library's file: as the property says, or extracted. */
    static Path find(String property, String platform) {
        if (property != null) {
            Path file = Path.of(property);
            if (!Files.isRegularFile(file)) {
                throw new TamisException(PROPERTY + ": no such file: " + property);
            }
            return file.toAbsolutePath();
        }
        try (InputStream inside = inJar(platform)) {
            if (inside == null) {
                throw new TamisException(missing(platform));
            }
            return extract(inside.readAllBytes(), folder());
        } catch (IOException e) {
            throw new TamisException(
                    "the native library cannot be extracted from the jar: "
                            + e
                            + "; the property "
                            + PROPERTY
                            + " names a file instead",
                    e);
        }
    }

    private static InputStream inJar(String platform) {
        return NativeLibrary.class.getResourceAsStream("/native/" + platform + "/" + FILE);
    }

    private static String missing(String platform) {
        List<String> there = new ArrayList<>();
        for (String known : PLATFORMS) {
            if (NativeLibrary.class.getResource("/native/" + known + "/" + FILE) != null) {
                there.add(known);
            }
        }
        return "this jar has no native library for "
                + platform
                + " (it has "
                + (there.isEmpty() ? "none" : there)
                + "); build one with `cargo build -p tamis-java` and name it by the property "
                + PROPERTY;
    }

    /** The folder for libraries: the user's cache, or that of temporary files. */
    static Path folder() throws IOException {
        String cache = System.getenv("XDG_CACHE_HOME");
        Path base =
                cache != null && cache.startsWith("/") ? Path.of(cache) : Path.of(home(), ".cache");
        try {
            return own(base.resolve("tamis"));
        } catch (IOException e) {
            String name = "tamis-" + System.getProperty("user.name");
            return own(Path.of(System.getProperty("java.io.tmpdir"), name));
        }
    }

    private static String home() {
        return System.getProperty("user.home", "/nonexistent");
    }

    /** Makes the folder, or takes it if it is this user's alone. */
    static Path own(Path folder) throws IOException {
        FileAttribute<Set<PosixFilePermission>> mode =
                PosixFilePermissions.asFileAttribute(PRIVATE);
        if (!Files.exists(folder)) {
            Files.createDirectories(folder, mode);
        }
        Path probe = Files.createTempFile(folder, "owner", null);
        try {
            boolean mine = Files.getOwner(folder).equals(Files.getOwner(probe));
            if (!mine
                    || Files.isSymbolicLink(folder)
                    || !Files.getPosixFilePermissions(folder).equals(PRIVATE)) {
                throw new IOException(folder + " is not a folder of this user alone (mode 0700)");
            }
        } finally {
            Files.delete(probe);
        }
        return folder;
    }

    /** The file with these bytes in that folder, written unless it is there. */
    static Path extract(byte[] library, Path folder) throws IOException {
        Path file = folder.resolve("libtamis_java-" + digest(library) + ".so");
        if (Files.exists(file) && Arrays.equals(Files.readAllBytes(file), library)) {
            return file;
        }
        Path part =
                Files.createTempFile(
                        folder, "part", null, PosixFilePermissions.asFileAttribute(PRIVATE));
        try {
            Files.write(part, library);
            Files.move(part, file, StandardCopyOption.ATOMIC_MOVE);
        } finally {
            Files.deleteIfExists(part);
        }
        return file;
    }

    private static String digest(byte[] library) {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(library);
            return HexFormat.of().formatHex(digest, 0, 16);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every JDK has SHA-256", e);
        }
    }

    static void loadFrom(Path file) {
        try {
            System.load(file.toString());
        } catch (UnsatisfiedLinkError e) {
            throw new TamisException(
                    "the native library "
                            + file
                            + " cannot be loaded: "
                            + e.getMessage()
                            + hint(e.getMessage()),
                    e);
        }
    }

    /** What to do about what the dynamic linker says. */
    static String hint(String message) {
        if (message == null) {
            return "";
        }
        if (message.contains("failed to map segment")
                || message.contains("Operation not permitted")) {
            return " (its folder is probably mounted noexec: copy it to another one, which the"
                    + " property "
                    + PROPERTY
                    + " names)";
        }
        if (message.contains("wrong ELF class")
                || message.contains("Possible cause")
                || message.contains("invalid ELF header")) {
            return " (it is for another architecture than this JVM's, " + platform() + ")";
        }
        return "";
    }
}
