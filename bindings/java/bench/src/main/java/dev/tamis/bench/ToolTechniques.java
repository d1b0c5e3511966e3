package dev.tamis.bench;

import java.nio.ByteBuffer;
import java.util.Map;
import java.util.function.LongFunction;

/** The tools that the study names and leaves: Javolution's structs over the mapped pool, and proxies like Swig's. */
final class ToolTechniques {
    private ToolTechniques() {}

    static void addTo(Map<String, LongFunction<Technique>> all) {
        all.put("javolution_struct", pool -> {
            ByteBuffer mapping = Native.mapping(pool);
            return packets -> structs(pool, packets, mapping);
        });
        all.put("javolution_placed", pool -> {
            JavolutionStruct struct = new JavolutionStruct();
            struct.setByteBuffer(Native.mapping(pool).order(struct.byteOrder()), 0);
            JavolutionView view = new JavolutionView(struct);
            return packets -> placed(pool, packets, struct, view);
        });
        all.put("swig", pool -> packets -> proxies(pool, packets));
    }

    /** A struct for each packet. */
    private static long structs(long pool, int packets, ByteBuffer mapping) {
        long base = Native.base(pool);
        long sum = 0;
        for (int i = 0; i < packets; i++) {
            JavolutionStruct struct = new JavolutionStruct();
            struct.setByteBuffer(mapping.order(struct.byteOrder()), (int) (Native.pointer(pool) - base));
            sum += new JavolutionView(struct).change();
        }
        return sum;
    }

    /** One struct, which is placed over each packet. */
    private static long placed(long pool, int packets, JavolutionStruct struct, JavolutionView view) {
        long base = Native.base(pool);
        long sum = 0;
        for (int i = 0; i < packets; i++) {
            struct.setByteBufferPosition((int) (Native.pointer(pool) - base));
            sum += view.change();
        }
        return sum;
    }

    /** A proxy for each packet. */
    private static long proxies(long pool, int packets) {
        long sum = 0;
        for (int i = 0; i < packets; i++) {
            sum += new SwigPacket(Native.pointer(pool), false).change();
        }
        return sum;
    }
}
