package dev.tamis.bench;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/** The realistic job in rounds of a million frames; otherwise as {@link StudyBenchmark}. */
@State(Scope.Thread)
@Fork(1)
@BenchmarkMode(Mode.SingleShotTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class RealisticBenchmark {
    /** One of {@link FrameTechniques}. */
    @Param("unsafe")
    public String technique;

    /** Frames of a burst. */
    @Param("256")
    public int burst;

    /** Frames of a round. */
    @Param("1000000")
    public int packets;

    private long frames;
    private FrameTechnique made;
    private long done;

    /** Makes the frames. */
    @Setup(Level.Trial)
    public void open() {
        frames = Native.frames();
        made = FrameTechniques.of(technique, frames);
    }

    /** A round. */
    @Benchmark
    public void round() {
        made.round(packets, burst);
        done += packets;
    }

    /** Compares the frames with the floor's. */
    @TearDown(Level.Trial)
    public void close() {
        Check.realistic(technique, frames, done);
        Native.closeFrames(frames);
    }
}
