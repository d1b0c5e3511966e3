package dev.tamis.bench;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;

/** The library's plain functions, without JNI. */
final class Downcalls {
    private static final SymbolLookup LIBRARY =
            SymbolLookup.libraryLookup(Path.of(Native.LIBRARY), Arena.global());
    private static final MethodHandle POINTER = of("tamis_bench_pointer", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG));
    private static final MethodHandle POLL = poll("tamis_bench_poll");
    private static final MethodHandle FRAMES_POLL = poll("tamis_bench_frames_poll");

    private Downcalls() {}

    private static MethodHandle poll(String name) {
        return of(name, FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_INT));
    }

    private static MethodHandle of(String name, FunctionDescriptor type) {
        return Linker.nativeLinker().downcallHandle(LIBRARY.find(name).orElseThrow(), type);
    }

    static long pointer(long pool) {
        try {
            return (long) POINTER.invokeExact(pool);
        } catch (Throwable e) {
            throw new LinkageError("tamis_bench_pointer", e);
        }
    }

    static int poll(long pool, int most) {
        try {
            return (int) POLL.invokeExact(pool, most);
        } catch (Throwable e) {
            throw new LinkageError("tamis_bench_poll", e);
        }
    }

    static int framesPoll(long frames, int most) {
        try {
            return (int) FRAMES_POLL.invokeExact(frames, most);
        } catch (Throwable e) {
            throw new LinkageError("tamis_bench_frames_poll", e);
        }
    }
}
