package dev.tamis;

import java.nio.ByteOrder;

/**
 * The layout of a frame's descriptor: 48 bytes in host byte order, in an array of at most a burst.
 *
 * <p>Contract: the constants are those of the Rust struct of the same fields; {@link #check}
 * compares them with what the loaded library says, so a library of another version is refused
 * before it is used. What {@link #ADDRESS} and {@link #LENGTH} enclose, and the head and tail room
 * around it, may be read and written until the next poll.
 */
final class Descriptor {
    /** The version of this layout. */
    static final int VERSION = 1;

    /** Bytes of a descriptor. */
    static final int SIZE = 48;

    /** u64: the address of the frame's first byte. Trimming and prepending move it. */
    static final int ADDRESS = 0;

    /** u64: nanoseconds since 1970. */
    static final int TIME = 8;

    /** u32: bytes in memory. */
    static final int LENGTH = 16;

    /** u32: bytes on the wire. */
    static final int WIRE_LENGTH = 20;

    /** u16: bytes before the frame that may be used. */
    static final int HEADROOM = 24;

    /** u16: bytes after the frame that may be used. */
    static final int TAILROOM = 26;

    /** u16: where the IP header begins, or {@link #NONE}. */
    static final int NETWORK = 28;

    /** u16: where the header of TCP, UDP or ICMP begins, or {@link #NONE}. */
    static final int TRANSPORT = 30;

    /** u16: the EtherType after VLAN tags. */
    static final int ETHER_TYPE = 32;

    /** u8: the protocol after extension headers, or {@link #NO_PROTOCOL}. */
    static final int PROTOCOL = 34;

    /** u8: {@link #FRAGMENT} and so on. */
    static final int FLAGS = 35;

    /** u16: the number of the wire. */
    static final int WIRE = 36;

    /** u8: the end of the wire that it came in by, 0 or 1. */
    static final int FROM = 38;

    /** u8: the handler's verdict, 0 at first. */
    static final int VERDICT = 39;

    /** u64: the number of the frame in its capture, or how many came before it. */
    static final int NUMBER = 40;

    /** The eight bytes from {@link #NETWORK} to {@link #FLAGS}, which are read at once. */
    static final int HEADERS = NETWORK;

    /** No such header. */
    static final int NONE = 0xFFFF;

    /** No protocol. */
    static final int NO_PROTOCOL = 255;

    /** A flag: part of a packet. */
    static final int FRAGMENT = 1;

    /** A flag: the first part of a packet. */
    static final int FIRST_FRAGMENT = 2;

    /** A flag: shorter in memory than on the wire. */
    static final int TRUNCATED = 4;

    /** A flag: without an Ethernet header. */
    static final int NOT_ETHERNET = 8;

    /** A verdict: the handler failed, and the configuration says what happens to the frame. */
    static final int HANDLER_ERROR = 3;

    private static final boolean IS_LITTLE = ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN;

    private static final String[] NAMES = {
        "size",
        "burst",
        "address",
        "time",
        "length",
        "wire length",
        "headroom",
        "tailroom",
        "network",
        "transport",
        "EtherType",
        "protocol",
        "flags",
        "wire",
        "from",
        "verdict",
        "number"
    };

    private static final long[] EXPECTED = {
        SIZE,
        0,
        ADDRESS,
        TIME,
        LENGTH,
        WIRE_LENGTH,
        HEADROOM,
        TAILROOM,
        NETWORK,
        TRANSPORT,
        ETHER_TYPE,
        PROTOCOL,
        FLAGS,
        WIRE,
        FROM,
        VERDICT,
        NUMBER
    };

    private Descriptor() {}

    /** {@link #NETWORK} of {@link #HEADERS}. */
    static int network(long headers) {
        return (int) (IS_LITTLE ? headers : headers >>> 48) & 0xFFFF;
    }

    /** {@link #TRANSPORT} of {@link #HEADERS}. */
    static int transport(long headers) {
        return (int) (IS_LITTLE ? headers >>> 16 : headers >>> 32) & 0xFFFF;
    }

    /** {@link #ETHER_TYPE} of {@link #HEADERS}. */
    static int etherType(long headers) {
        return (int) (IS_LITTLE ? headers >>> 32 : headers >>> 16) & 0xFFFF;
    }

    /** {@link #PROTOCOL} of {@link #HEADERS}. */
    static int protocol(long headers) {
        return (int) (IS_LITTLE ? headers >>> 48 : headers >>> 8) & 0xFF;
    }

    /** {@link #FLAGS} of {@link #HEADERS}. */
    static int flags(long headers) {
        return (int) (IS_LITTLE ? headers >>> 56 : headers) & 0xFF;
    }

    /** Entries of the array that {@link Native#layout} fills. */
    static int entries() {
        return NAMES.length;
    }

    /**
     * Refuses a library whose layout is another one.
     *
     * @param version what {@link Native#layout} returned
     * @param layout what it filled
     */
    static void check(int version, long[] layout) {
        if (version != VERSION) {
            throw new TamisException(
                    "the native library has layout version "
                            + version
                            + " of descriptors, this jar "
                            + VERSION
                            + ": use the library that came with the jar");
        }
        for (int i = 0; i < EXPECTED.length; i++) {
            if (i != 1 && layout[i] != EXPECTED[i]) {
                throw new TamisException(
                        "the native library has "
                                + layout[i]
                                + " as "
                                + NAMES[i]
                                + " of a descriptor, this jar "
                                + EXPECTED[i]
                                + ": use the library that came with the jar");
            }
        }
    }
}
