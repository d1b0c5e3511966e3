package dev.tamis.examples;

import dev.tamis.Context;
import dev.tamis.Dataplane;
import dev.tamis.Handler;
import dev.tamis.Packet;
import dev.tamis.Verdict;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * Writes what a filter lets through into pcapng files of a bounded size, the oldest of which go,
 * and passes everything.
 *
 * <p>Files are named {@code NAME-WORKER-NUMBER.pcapng}. What a file cannot take (the disk is full)
 * costs the packet its verdict as of any handler that throws, so {@code [middlebox] on_error =
 * "pass"} keeps the link going.
 */
public final class Recorder implements Handler {
    private final String name;
    private final long most;
    private final int keep;
    private final Filter filter;
    private int worker;
    private int number;

    /** The file that is written; null before the first packet. */
    private PcapngFile file;

    /**
     * A recorder.
     *
     * @param name what its files' names begin with, and the interface that they name
     * @param most bytes of a file, after which another one begins
     * @param keep how many files are kept
     * @param words the filter: {@code tcp}, {@code udp}, {@code icmp}, {@code host ADDRESS}, {@code
     *     port NUMBER}
     */
    public Recorder(String name, long most, int keep, String... words) {
        this.name = name;
        this.most = most;
        this.keep = keep;
        this.filter = Filter.of(Arrays.asList(words));
    }

    @Override
    public void init(Context context) {
        worker = context.worker();
    }

    @Override
    public Verdict packet(Packet packet) throws IOException {
        if (packet.isEthernet() && filter.matches(packet)) {
            if (file == null || file.size() >= most) {
                rotate();
            }
            file.add(packet);
        }
        return Verdict.PASS;
    }

    private Path path(int of) {
        return Path.of(name + "-" + worker + "-" + of + ".pcapng");
    }

    private void rotate() throws IOException {
        close();
        Files.deleteIfExists(path(number - keep));
        file = new PcapngFile(path(number++), Path.of(name).getFileName().toString());
    }

    @Override
    public void close() throws IOException {
        if (file != null) {
            PcapngFile full = file;
            file = null;
            full.close();
        }
    }

    /**
     * Runs it.
     *
     * @param arguments the configuration of the run, the name, bytes of a file, files to keep, and
     *     the filter
     */
    public static void main(String[] arguments) {
        Arguments.expect(
                arguments,
                4,
                "Recorder LIVE.toml NAME BYTES FILES [tcp|udp|icmp|host ADDRESS|port NUMBER]…");
        long most = Long.parseLong(arguments[2]);
        int keep = Integer.parseInt(arguments[3]);
        String[] words = Arrays.copyOfRange(arguments, 4, arguments.length);
        try (Dataplane dataplane = Dataplane.open(Path.of(arguments[0]))) {
            Arguments.print(dataplane.run(() -> new Recorder(arguments[1], most, keep, words)));
        }
    }
}
