package dev.tamis;

import java.nio.file.Path;
import java.util.List;

/**
 * Replays as calls of a library: no run, no root. The answers are those of {@code tamis replay} and
 * {@code tamis why}.
 *
 * <pre>{@code
 * Replay replay = Tamis.replay(Path.of("rules.v4"), Path.of("office.pcap"));
 * assertEquals(0, replay.verdict("drop"));
 * }</pre>
 */
public final class Tamis {
    private Tamis() {}

    /**
     * Replays a capture under rules.
     *
     * @param rules save text, or a folder that {@code tamis collect} wrote
     * @param capture pcap or pcapng, plain or compressed
     * @return what happened to its packets
     * @throws TamisException if one of them cannot be read
     */
    public static Replay replay(Path rules, Path capture) {
        return replay(List.of(rules), List.of(capture), new Options());
    }

    /**
     * Replays captures, merged by time, under rules.
     *
     * @param rules files of save text, one of each family
     * @param captures files
     * @param options of the command line
     * @return what happened to their packets
     * @throws TamisException if one of them cannot be read, or an option is refused
     */
    public static Replay replay(List<Path> rules, List<Path> captures, Options options) {
        NativeLibrary.load();
        return Replay.of(Native.replay(strings(rules), strings(captures), options.json()));
    }

    /**
     * The whole path of one packet.
     *
     * @param rules save text, or a folder that {@code tamis collect} wrote
     * @param capture the capture that it is in
     * @param number its number there, from 1
     * @return the rules that it met, and the verdict
     * @throws TamisException if one of them cannot be read, or there is no such packet
     */
    public static Why why(Path rules, Path capture, long number) {
        return why(List.of(rules), capture, number, new Options());
    }

    /**
     * The whole path of one packet.
     *
     * @param rules files of save text, one of each family
     * @param capture the capture that it is in
     * @param number its number there, from 1
     * @param options of the command line
     * @return the rules that it met, and the verdict
     * @throws TamisException if one of them cannot be read, an option is refused, or there is no
     *     such packet
     */
    public static Why why(List<Path> rules, Path capture, long number, Options options) {
        NativeLibrary.load();
        return Why.of(Native.why(strings(rules), capture.toString(), number, options.json()));
    }

    private static String[] strings(List<Path> paths) {
        return paths.stream().map(Path::toString).toArray(String[]::new);
    }
}
