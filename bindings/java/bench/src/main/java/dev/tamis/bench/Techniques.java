package dev.tamis.bench;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongFunction;

/**
 * The techniques of the study's job by name, in the order of the tables.
 *
 * <p>Contract: each is made over the handle of a pool, aligned or packed as {@link #isAligned} says. Those of {@code
 * java.lang.foreign} are there if the jar has them and the JVM is 22 or later.
 */
final class Techniques {
    private static final Map<String, LongFunction<Technique>> ALL = all();

    private Techniques() {}

    static List<String> names() {
        return new ArrayList<>(ALL.keySet());
    }

    static Technique of(String name, long pool) {
        LongFunction<Technique> technique = ALL.get(name);
        if (technique == null) {
            throw new IllegalArgumentException(name + ": expected one of " + ALL.keySet());
        }
        return technique.apply(pool);
    }

    /** Whether the technique's structs are as a compiler aligns them. */
    static boolean isAligned(String name) {
        return name.endsWith("_aligned");
    }

    private static Map<String, LongFunction<Technique>> all() {
        Map<String, LongFunction<Technique>> all = new LinkedHashMap<>();
        all.put("floor", pool -> packets -> Native.floor(pool, packets));
        all.put("floor_aligned", pool -> packets -> Native.floor(pool, packets));
        ObjectTechniques.addTo(all);
        BufferTechniques.addTo(all);
        PointerTechniques.addTo(all);
        Foreign.addTo(all);
        JnaTechniques.addTo(all);
        ToolTechniques.addTo(all);
        return all;
    }
}
