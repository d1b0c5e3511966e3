package dev.tamis;

import java.io.IOException;
import java.io.StringReader;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;

/**
 * The {@code .properties} files of the study's framework, as configurations.
 *
 * <p>Contract: the text is that of {@code tamis run --from-properties}; a test holds one to the other. {@code rxburst txburst
 * freeburst} become {@code [burst]}, {@code memorychannels memory programid blacklist} arguments of DPDK's EAL, {@code
 * numports} a port for each bit of the mask, wired in pairs, {@code numcores} the workers' cores, and {@code programname} a
 * comment.
 */
final class StudyProperties {
    private static final List<String> KEYS = List.of(
            "rxburst", "txburst", "freeburst", "numcores", "numports", "memorychannels", "programid", "programname",
            "memory", "blacklist");

    private static final long MOST_FRAMES = 512;
    private static final long MOST_CORES = 128;
    private static final long MOST_CHANNELS = 32;
    private static final long MOST_MEMORY = 1 << 20;
    private static final Pattern WORD = Pattern.compile("[A-Za-z0-9_-]+");
    private static final Pattern PCI = Pattern.compile("[0-9A-Fa-f:.]+");

    private final String file;
    private final Properties properties;

    private StudyProperties(String file, Properties properties) {
        this.file = file;
        this.properties = properties;
    }

    /** The configuration that the text of a file stands for. */
    static String toToml(String file, String text) {
        Properties properties = new Properties();
        try {
            properties.load(new StringReader(text));
        } catch (IOException | IllegalArgumentException e) {
            throw new TamisException(file + ": " + e.getMessage(), e);
        }
        StudyProperties study = new StudyProperties(file, properties);
        study.refuseUnknown();
        return study.toml();
    }

    private void refuseUnknown() {
        Set<String> unknown = new TreeSet<>(properties.stringPropertyNames());
        KEYS.forEach(unknown::remove);
        for (String key : unknown) {
            throw new TamisException(file + ": there is no key \"" + key + "\"; did you mean \"" + nearest(key)
                    + "\"? There are " + String.join(" ", KEYS));
        }
    }

    /** The key that takes the fewest changes of letters. */
    static String nearest(String key) {
        return KEYS.stream().min(Comparator.comparingInt(one -> distance(one, key))).orElseThrow();
    }

    private static int distance(String a, String b) {
        int[] row = new int[b.length() + 1];
        for (int j = 0; j <= b.length(); j++) {
            row[j] = j;
        }
        for (int i = 1; i <= a.length(); i++) {
            int diagonal = row[0];
            row[0] = i;
            for (int j = 1; j <= b.length(); j++) {
                int changed = diagonal + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
                diagonal = row[j];
                row[j] = Math.min(changed, Math.min(row[j], row[j - 1]) + 1);
            }
        }
        return row[b.length()];
    }

    private String toml() {
        StringBuilder toml = new StringBuilder("# From ").append(file);
        if (value("programname") != null) {
            toml.append(", of ").append(value("programname").replaceAll("\\p{Cntrl}", "?"));
        }
        toml.append('\n');
        ports(toml);
        toml.append("[rules]\nip = \"rules.v4\"\n");
        workers(toml);
        burst(toml);
        eal(toml);
        return toml.toString();
    }

    private void ports(StringBuilder toml) {
        List<Integer> ports = mask();
        for (int port : ports) {
            toml.append("[[port]]\nname = \"port").append(port).append("\"\nkind = \"dpdk\"\ndevice = \"")
                    .append(port).append("\"\n");
        }
        int paired = ports.size() & ~1;
        if (paired < ports.size()) {
            toml.append("[[port]]\nname = \"back\"\nkind = \"loopback\"\n");
            wire(toml, "port" + ports.get(paired), "back");
        }
        for (int i = 0; i < paired; i += 2) {
            wire(toml, "port" + ports.get(i), "port" + ports.get(i + 1));
        }
    }

    private static void wire(StringBuilder toml, String one, String other) {
        toml.append("[[wire]]\nports = [\"").append(one).append("\", \"").append(other).append("\"]\n");
    }

    /** The numbers of the ports. */
    private List<Integer> mask() {
        String value = value("numports");
        if (value == null) {
            throw new TamisException(file + ": expected numports, a mask of ports such as 0x3");
        }
        boolean isHex = value.startsWith("0x") || value.startsWith("0X");
        long mask = parsed(isHex ? value.substring(2) : value, isHex ? 16 : 10);
        if (mask < 1 || mask > 0xFFFF_FFFFL) {
            throw wrong("numports", "a mask of ports such as 0x3");
        }
        List<Integer> ports = new ArrayList<>();
        for (int bit = 0; bit < Integer.SIZE; bit++) {
            if ((mask >>> bit & 1) == 1) {
                ports.add(bit);
            }
        }
        return ports;
    }

    /** One worker needs no word. */
    private void workers(StringBuilder toml) {
        long count = number("numcores", MOST_CORES).orElse(1);
        if (count > 1) {
            List<Integer> cores = new ArrayList<>();
            for (int core = 0; core < count; core++) {
                cores.add(core);
            }
            toml.append("[workers]\ncores = ").append(cores).append('\n');
        }
    }

    private void burst(StringBuilder toml) {
        StringBuilder lines = new StringBuilder();
        for (String name : List.of("rx", "tx", "free")) {
            number(name + "burst", MOST_FRAMES)
                    .ifPresent(frames -> lines.append(name).append(" = ").append(frames).append('\n'));
        }
        if (lines.length() > 0) {
            toml.append("[burst]\n").append(lines);
        }
    }

    private void eal(StringBuilder toml) {
        List<String> arguments = new ArrayList<>();
        number("memorychannels", MOST_CHANNELS).ifPresent(n -> arguments.addAll(List.of("-n", Long.toString(n))));
        number("memory", MOST_MEMORY).ifPresent(n -> arguments.addAll(List.of("-m", Long.toString(n))));
        if (value("programid") != null) {
            arguments.addAll(List.of("--file-prefix", like("programid", value("programid"), WORD,
                    "letters, digits, - and _")));
        }
        if (value("blacklist") != null) {
            for (String device : value("blacklist").split(",")) {
                if (!device.isBlank()) {
                    arguments.addAll(List.of("--block", like("blacklist", device.trim(), PCI,
                            "PCI addresses such as 00:09.0")));
                }
            }
        }
        List<String> quoted = arguments.stream().map(argument -> '"' + argument + '"').toList();
        toml.append("[dpdk]\neal = ").append(quoted).append('\n');
    }

    private String like(String key, String value, Pattern pattern, String expected) {
        if (!pattern.matcher(value).matches()) {
            throw wrong(key, expected);
        }
        return value;
    }

    /** A whole number from 1 to {@code most}, if the key is there. */
    private OptionalLong number(String key, long most) {
        String value = value(key);
        if (value == null) {
            return OptionalLong.empty();
        }
        long number = parsed(value, 10);
        if (number < 1 || number > most) {
            throw wrong(key, "a whole number from 1 to " + most);
        }
        return OptionalLong.of(number);
    }

    private static long parsed(String digits, int radix) {
        try {
            return Long.parseLong(digits, radix);
        } catch (NumberFormatException e) {
            return -1;
        }
    }

    /** Without the blanks at its end, which Java leaves there. */
    private String value(String key) {
        String value = properties.getProperty(key);
        return value == null ? null : value.strip();
    }

    private TamisException wrong(String key, String expected) {
        return new TamisException(file + ": " + key + ": expected " + expected + ", found \"" + value(key) + "\"");
    }
}
