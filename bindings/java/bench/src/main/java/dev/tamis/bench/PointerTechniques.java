package dev.tamis.bench;

import static dev.tamis.bench.Memory.UNSAFE;

import java.util.Map;
import java.util.function.LongFunction;

/**
 * The study's techniques with {@code Unsafe}: the struct copied into a {@link Packet} and back, or read and written where it
 * is. Its pointer is asked for by a native call for each packet, as in the study, or comes in an array by one for each burst.
 */
final class PointerTechniques {
    private PointerTechniques() {}

    static void addTo(Map<String, LongFunction<Technique>> all) {
        all.put("unsafe_object", pool -> packets -> object(pool, packets, new DirectView()));
        all.put("unsafe_object_batched", pool -> packets -> objectBatched(pool, packets, new DirectView()));
        all.put("direct", pool -> packets -> direct(pool, packets, new DirectView()));
        all.put("direct_batched", pool -> packets -> batched(pool, packets, new DirectView()));
        all.put("direct_batched_aligned", pool -> packets -> aligned(pool, packets, new AlignedView()));
    }

    private static long object(long pool, int packets, DirectView view) {
        long sum = 0;
        for (int i = 0; i < packets; i++) {
            Packet packet = new Packet();
            view.at(Native.pointer(pool)).copyTo(packet);
            sum += packet.change();
            packet.copyTo(view);
        }
        return sum;
    }

    private static long objectBatched(long pool, int packets, DirectView view) {
        long burst = Native.burst(pool);
        long sum = 0;
        for (int left = packets; left > 0; ) {
            int polled = Native.poll(pool, Math.min(left, Technique.BURST));
            for (int i = 0; i < polled; i++) {
                Packet packet = new Packet();
                view.at(UNSAFE.getLong(burst + i * 8L)).copyTo(packet);
                sum += packet.change();
                packet.copyTo(view);
            }
            left -= polled;
        }
        return sum;
    }

    private static long direct(long pool, int packets, DirectView view) {
        long sum = 0;
        for (int i = 0; i < packets; i++) {
            sum += view.at(Native.pointer(pool)).change();
        }
        return sum;
    }

    private static long batched(long pool, int packets, DirectView view) {
        long burst = Native.burst(pool);
        long sum = 0;
        for (int left = packets; left > 0; ) {
            int polled = Native.poll(pool, Math.min(left, Technique.BURST));
            for (int i = 0; i < polled; i++) {
                sum += view.at(UNSAFE.getLong(burst + i * 8L)).change();
            }
            left -= polled;
        }
        return sum;
    }

    private static long aligned(long pool, int packets, AlignedView view) {
        long burst = Native.burst(pool);
        long sum = 0;
        for (int left = packets; left > 0; ) {
            int polled = Native.poll(pool, Math.min(left, Technique.BURST));
            for (int i = 0; i < polled; i++) {
                sum += view.at(UNSAFE.getLong(burst + i * 8L)).change();
            }
            left -= polled;
        }
        return sum;
    }
}
