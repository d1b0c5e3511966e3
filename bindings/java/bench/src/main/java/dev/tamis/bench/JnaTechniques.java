package dev.tamis.bench;

import com.sun.jna.Pointer;
import java.util.Map;
import java.util.function.LongFunction;

/** JNA, by functions that are mapped directly: the struct as a {@code Structure}, or field by field of a {@code Pointer}. */
final class JnaTechniques {
    private JnaTechniques() {}

    /** The library's plain function, bound when the first technique is made. */
    static final class Library {
        static {
            com.sun.jna.Native.register(Library.class, Native.LIBRARY);
        }

        private Library() {}

        // Named as in the library: JNA finds it by that.
        static native Pointer tamis_bench_pointer(long pool);
    }

    static void addTo(Map<String, LongFunction<Technique>> all) {
        all.put("jna_pointer", pool -> packets -> pointer(pool, packets, new JnaView()));
        all.put("jna_structure", pool -> packets -> structure(pool, packets));
    }

    private static long pointer(long pool, int packets, JnaView view) {
        long sum = 0;
        for (int i = 0; i < packets; i++) {
            sum += view.at(Library.tamis_bench_pointer(pool)).change();
        }
        return sum;
    }

    private static long structure(long pool, int packets) {
        long sum = 0;
        for (int i = 0; i < packets; i++) {
            JnaStructure struct = new JnaStructure(Library.tamis_bench_pointer(pool));
            Packet packet = new Packet();
            struct.read();
            struct.to(packet);
            sum += packet.change();
            struct.from(packet);
            struct.write();
        }
        return sum;
    }
}
