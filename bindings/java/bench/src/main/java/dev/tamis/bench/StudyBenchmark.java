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

/**
 * The study's experiment: rounds of a million packets, each round a figure, the first ones as well.
 *
 * <p>Contract: one technique in each fork, so no other one has spoilt its profile. What all rounds left in memory is held to
 * what the floor leaves.
 */
@State(Scope.Thread)
@Fork(1)
@BenchmarkMode(Mode.SingleShotTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class StudyBenchmark {
    /** One of {@link Techniques}. */
    @Param("direct_batched")
    public String technique;

    /** Structs of the ring: 1 is the study's static one. */
    @Param("1024")
    public int structs;

    /** Packets of a round. */
    @Param("1000000")
    public int packets;

    private long pool;
    private Technique made;
    private long done;
    private long sum;

    /** Makes the pool. */
    @Setup(Level.Trial)
    public void open() {
        pool = Native.pool(structs, Techniques.isAligned(technique));
        made = Techniques.of(technique, pool);
    }

    /**
     * A round.
     *
     * @return what the fields of its structs added up to
     */
    @Benchmark
    public long round() {
        long added = made.round(packets);
        done += packets;
        sum += added;
        return added;
    }

    /** Compares the pool with the floor's. */
    @TearDown(Level.Trial)
    public void close() {
        Check.study(technique, pool, structs, done, sum);
        Native.closePool(pool);
    }
}
