package dev.tamis.bench;

import java.util.Map;
import java.util.function.LongFunction;

/** The study's objects: native code fills a {@link Packet}, and reads it back. It is made in Java, or in native code. */
final class ObjectTechniques {
    private ObjectTechniques() {}

    static void addTo(Map<String, LongFunction<Technique>> all) {
        all.put("object_lookup", pool -> packets -> lookup(pool, packets));
        all.put("object_lookup_native", pool -> packets -> lookupNative(pool, packets));
        all.put("object_methods", pool -> packets -> methods(pool, packets));
        all.put("object_methods_native", pool -> packets -> methodsNative(pool, packets));
        all.put("object_fields", pool -> packets -> fields(pool, packets));
        all.put("object_fields_native", pool -> packets -> fieldsNative(pool, packets));
    }

    private static long lookup(long pool, int packets) {
        long sum = 0;
        for (int i = 0; i < packets; i++) {
            Packet packet = new Packet();
            Native.takeLookup(pool, packet);
            sum += packet.change();
            Native.giveLookup(pool, packet);
        }
        return sum;
    }

    private static long lookupNative(long pool, int packets) {
        long sum = 0;
        for (int i = 0; i < packets; i++) {
            Packet packet = Native.makeLookup(pool);
            sum += packet.change();
            Native.giveLookup(pool, packet);
        }
        return sum;
    }

    private static long methods(long pool, int packets) {
        long sum = 0;
        for (int i = 0; i < packets; i++) {
            Packet packet = new Packet();
            Native.takeMethods(pool, packet);
            sum += packet.change();
            Native.giveMethods(pool, packet);
        }
        return sum;
    }

    private static long methodsNative(long pool, int packets) {
        long sum = 0;
        for (int i = 0; i < packets; i++) {
            Packet packet = Native.makeMethods(pool);
            sum += packet.change();
            Native.giveMethods(pool, packet);
        }
        return sum;
    }

    private static long fields(long pool, int packets) {
        long sum = 0;
        for (int i = 0; i < packets; i++) {
            Packet packet = new Packet();
            Native.takeFields(pool, packet);
            sum += packet.change();
            Native.giveFields(pool, packet);
        }
        return sum;
    }

    private static long fieldsNative(long pool, int packets) {
        long sum = 0;
        for (int i = 0; i < packets; i++) {
            Packet packet = Native.makeFields(pool);
            sum += packet.change();
            Native.giveFields(pool, packet);
        }
        return sum;
    }
}
