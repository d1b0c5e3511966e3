package dev.tamis.bench;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/** Values of native memory that are aligned to nothing. */
final class Layouts {
    static final ValueLayout.OfByte BYTE = ValueLayout.JAVA_BYTE;
    static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT_UNALIGNED;
    static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
    static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;
    static final ValueLayout.OfShort NETWORK_SHORT = SHORT.withOrder(ByteOrder.BIG_ENDIAN);
    static final ValueLayout.OfInt NETWORK_INT = INT.withOrder(ByteOrder.BIG_ENDIAN);

    /** All of memory. */
    static final MemorySegment EVERYTHING = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    private Layouts() {}
}
