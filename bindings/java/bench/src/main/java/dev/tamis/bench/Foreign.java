package dev.tamis.bench;

import java.util.Map;
import java.util.function.LongFunction;

/**
 * Finds the techniques of {@code java.lang.foreign}, which are compiled apart for JDK 22.
 *
 * <p>Contract: absent without a word where the jar was built without them, or the JVM is older; the benchmark lists what it
 * has not run.
 */
final class Foreign {
    private static final int SINCE = 22;

    private Foreign() {}

    static void addTo(Map<String, LongFunction<Technique>> all) {
        add("dev.tamis.bench.ForeignTechniques", all);
    }

    static void addFramesTo(Map<String, LongFunction<FrameTechnique>> all) {
        add("dev.tamis.bench.ForeignFrameTechniques", all);
    }

    private static void add(String type, Map<?, ?> all) {
        if (Runtime.version().feature() < SINCE) {
            return;
        }
        try {
            Class.forName(type).getDeclaredMethod("addTo", Map.class).invoke(null, all);
        } catch (ClassNotFoundException e) {
            // The jar was built without them.
        } catch (ReflectiveOperationException e) {
            throw new LinkageError(type, e);
        }
    }
}
