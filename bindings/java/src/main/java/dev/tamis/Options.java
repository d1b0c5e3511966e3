package dev.tamis;

import com.grack.nanojson.JsonWriter;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Options of {@link Tamis#replay} and {@link Tamis#why}: those of the command line by their long
 * names, without dashes.
 *
 * <pre>{@code
 * new Options().with("in", "lan0").with("net", "lan0=10.0.0.0/8").with("net", "wan0=0.0.0.0/0")
 * }</pre>
 *
 * <p>One that the command line does not have is refused by the call that it is given to.
 */
public final class Options {
    private final Map<String, Object> all = new LinkedHashMap<>();

    /** No options. */
    public Options() {}

    /**
     * Adds an option; one that is given again has all of its values.
     *
     * @param name its long name, without dashes
     * @param value its value
     * @return this
     */
    public Options with(String name, String value) {
        Object before = all.get(name);
        if (before == null) {
            all.put(name, value);
        } else if (before instanceof List<?> list) {
            List<Object> more = new ArrayList<>(list);
            more.add(value);
            all.put(name, more);
        } else {
            all.put(name, List.of(before, value));
        }
        return this;
    }

    /**
     * Adds an option without a value.
     *
     * @param name its long name, without dashes
     * @return this
     */
    public Options with(String name) {
        all.put(name, true);
        return this;
    }

    String json() {
        return JsonWriter.string(all);
    }
}
