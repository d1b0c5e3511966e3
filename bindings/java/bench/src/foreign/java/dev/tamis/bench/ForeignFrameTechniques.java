package dev.tamis.bench;

import java.util.Map;
import java.util.function.LongFunction;

/** {@code java.lang.foreign} on the realistic job: one segment of all memory, one with bounds, and a poll without JNI. */
final class ForeignFrameTechniques {
    private ForeignFrameTechniques() {}

    static void addTo(Map<String, LongFunction<FrameTechnique>> all) {
        all.put("ffm_global", frames -> FrameTechniques.polled(frames, new GlobalFrame(Native.descriptors(frames))));
        all.put("ffm_pool", frames -> FrameTechniques.polled(frames, new SegmentFrame(frames)));
        // By sun.misc.Unsafe in a JVM that ignores the classes for 22.
        all.put("tamis_unsafe", FrameTechniques::delivered);
        all.put("ffm_poll", frames -> polled(frames, new GlobalFrame(Native.descriptors(frames))));
    }

    private static FrameTechnique polled(long frames, GlobalFrame view) {
        return (packets, burst) -> {
            for (int left = packets; left > 0; ) {
                int polled = Downcalls.framesPoll(frames, Math.min(left, burst));
                for (int i = 0; i < polled; i++) {
                    view.point(i);
                    view.putVerdict(Nat.handle(view));
                }
                left -= polled;
            }
            Downcalls.framesPoll(frames, 0);
        };
    }
}
