package dev.tamis.bench;

import java.io.PrintStream;
import java.lang.management.ClassLoadingMXBean;
import java.lang.management.ManagementFactory;

/**
 * What a technique costs before it has done its job on one packet, in a JVM that has done nothing else.
 *
 * <p>{@link #main} prints a line: nanoseconds, and classes that were loaded meanwhile, of the technique that it is given. The
 * benchmark's library, which all have, is loaded before that.
 */
final class SetUp {
    private SetUp() {}

    /**
     * Measures one technique.
     *
     * @param arguments its name
     */
    public static void main(String[] arguments) {
        String technique = arguments[0];
        PrintStream lines = Check.lines();
        ClassLoadingMXBean classes = ManagementFactory.getClassLoadingMXBean();
        long pool = Native.pool(1, Techniques.isAligned(technique));
        Techniques.names();
        long loaded = classes.getTotalLoadedClassCount();
        long begun = System.nanoTime();
        long sum = Techniques.of(technique, pool).round(1);
        long nanos = System.nanoTime() - begun;
        loaded = classes.getTotalLoadedClassCount() - loaded;
        Check.study(technique, pool, 1, 1, sum);
        Native.closePool(pool);
        lines.printf("%d %d%n", nanos, loaded);
    }
}
