package dev.tamis.bench;

import dev.tamis.Delivery;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongFunction;

/**
 * The techniques of the realistic job by name, in the order of the tables.
 *
 * <p>Contract: each is made over the handle of frames. Those of {@code java.lang.foreign} are there if the jar has them and
 * the JVM is 22 or later. What is called unchecked is so by a property of its JVM, `tamis-bench java` sets it.
 */
final class FrameTechniques {
    private static final Map<String, LongFunction<FrameTechnique>> ALL = all();

    private FrameTechniques() {}

    static List<String> names() {
        return new ArrayList<>(ALL.keySet());
    }

    static FrameTechnique of(String name, long frames) {
        LongFunction<FrameTechnique> technique = ALL.get(name);
        if (technique == null) {
            throw new IllegalArgumentException(name + ": expected one of " + ALL.keySet());
        }
        return technique.apply(frames);
    }

    private static Map<String, LongFunction<FrameTechnique>> all() {
        Map<String, LongFunction<FrameTechnique>> all = new LinkedHashMap<>();
        all.put("floor", frames -> (packets, burst) -> Native.framesFloor(frames, packets, burst));
        all.put("unsafe", frames -> polled(frames, new UnsafeFrame(Native.descriptors(frames))));
        all.put("mapped", frames -> polled(frames, new MappedFrame(frames)));
        all.put("upcall", frames -> {
            Upcalled handler = new Upcalled(new UnsafeFrame(Native.descriptors(frames)));
            return (packets, burst) -> Native.upcalls(frames, packets, burst, handler);
        });
        all.put("unsafe_unchecked", all.get("unsafe"));
        Foreign.addFramesTo(all);
        all.put("tamis", FrameTechniques::delivered);
        all.put("tamis_unchecked", FrameTechniques::delivered);
        return all;
    }

    /** The API: a handler, called as a worker calls it. */
    static FrameTechnique delivered(long frames) {
        Delivery delivery = new Delivery(Native.descriptors(frames), new NatHandler());
        return (packets, burst) -> {
            for (int left = packets; left > 0; ) {
                int polled = Native.framesPoll(frames, Math.min(left, burst));
                delivery.deliver(polled);
                left -= polled;
            }
            Native.framesPoll(frames, 0);
            delivery.check();
        };
    }

    /** Java polls by JNI, one call for each burst. */
    static FrameTechnique polled(long frames, FrameView view) {
        return (packets, burst) -> {
            for (int left = packets; left > 0; ) {
                int polled = Native.framesPoll(frames, Math.min(left, burst));
                for (int i = 0; i < polled; i++) {
                    view.point(i);
                    view.putVerdict(Nat.handle(view));
                }
                left -= polled;
            }
            Native.framesPoll(frames, 0);
        };
    }
}
