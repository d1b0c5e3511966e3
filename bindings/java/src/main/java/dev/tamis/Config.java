package dev.tamis;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The configuration of a run: the TOML of {@code tamis run}, or a file of properties of the study's
 * framework.
 *
 * @param toml its text
 * @param place its file, which errors name, or the folder that its relative paths are from
 */
public record Config(String toml, Path place) {
    /**
     * A configuration in a file; relative paths in it are from its folder.
     *
     * @param file of TOML
     * @return the configuration
     * @throws TamisException if the file cannot be read
     */
    public static Config of(Path file) {
        return new Config(read(file), file);
    }

    /**
     * A configuration as text; relative paths in it are from the current folder.
     *
     * @param toml its text
     * @return the configuration
     */
    public static Config ofText(String toml) {
        return new Config(toml, Path.of("").toAbsolutePath());
    }

    /**
     * The configuration that a file of the study's framework stands for: ten keys, the same text as
     * of {@code tamis run --from-properties}. Rules are in {@code rules.v4} beside it.
     *
     * @param file of properties
     * @return the configuration
     * @throws TamisException if the file cannot be read, a key is none of the ten, or a value is
     *     not what it should be
     */
    public static Config fromProperties(Path file) {
        Path folder = file.toAbsolutePath().getParent();
        String text = read(file);
        NativeLibrary.load();
        return new Config(Native.properties(file.toString(), text), folder);
    }

    private static String read(Path file) {
        try {
            return Files.readString(file, StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new TamisException(file + ": " + e, e);
        }
    }
}
