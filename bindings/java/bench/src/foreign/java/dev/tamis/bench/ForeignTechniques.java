package dev.tamis.bench;

import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.function.LongFunction;

/**
 * {@code java.lang.foreign} on the study's job: all of memory as one segment, a segment with the pool's bounds, a layout with
 * a handle for each field, and calls without JNI, for each burst and for each packet.
 */
final class ForeignTechniques {
    private ForeignTechniques() {}

    static void addTo(Map<String, LongFunction<Technique>> all) {
        all.put("ffm_direct", pool -> packets -> direct(pool, packets, new GlobalView()));
        all.put("ffm_global", pool -> packets -> global(pool, packets, new GlobalView()));
        all.put("ffm_poll", pool -> packets -> poll(pool, packets, new GlobalView()));
        all.put("ffm_pool", pool -> {
            SegmentView view = new SegmentView(MemorySegment.ofBuffer(Native.mapping(pool)));
            return packets -> bounded(pool, packets, view);
        });
        all.put("ffm_struct", pool -> {
            StructView view = new StructView(MemorySegment.ofBuffer(Native.mapping(pool)));
            return packets -> struct(pool, packets, view);
        });
    }

    private static long address(long burst, int index) {
        return Layouts.EVERYTHING.get(Layouts.LONG, burst + index * 8L);
    }

    private static long direct(long pool, int packets, GlobalView view) {
        long sum = 0;
        for (int i = 0; i < packets; i++) {
            sum += view.at(Downcalls.pointer(pool)).change();
        }
        return sum;
    }

    private static long global(long pool, int packets, GlobalView view) {
        long burst = Native.burst(pool);
        long sum = 0;
        for (int left = packets; left > 0; ) {
            int polled = Native.poll(pool, Math.min(left, Technique.BURST));
            for (int i = 0; i < polled; i++) {
                sum += view.at(address(burst, i)).change();
            }
            left -= polled;
        }
        return sum;
    }

    private static long poll(long pool, int packets, GlobalView view) {
        long burst = Native.burst(pool);
        long sum = 0;
        for (int left = packets; left > 0; ) {
            int polled = Downcalls.poll(pool, Math.min(left, Technique.BURST));
            for (int i = 0; i < polled; i++) {
                sum += view.at(address(burst, i)).change();
            }
            left -= polled;
        }
        return sum;
    }

    private static long bounded(long pool, int packets, SegmentView view) {
        long base = Native.base(pool);
        long burst = Native.burst(pool);
        long sum = 0;
        for (int left = packets; left > 0; ) {
            int polled = Native.poll(pool, Math.min(left, Technique.BURST));
            for (int i = 0; i < polled; i++) {
                sum += view.at(address(burst, i) - base).change();
            }
            left -= polled;
        }
        return sum;
    }

    private static long struct(long pool, int packets, StructView view) {
        long base = Native.base(pool);
        long burst = Native.burst(pool);
        long sum = 0;
        for (int left = packets; left > 0; ) {
            int polled = Native.poll(pool, Math.min(left, Technique.BURST));
            for (int i = 0; i < polled; i++) {
                sum += view.at(address(burst, i) - base).change();
            }
            left -= polled;
        }
        return sum;
    }
}
