package dev.tamis.bench;

/** The functions that Swig writes for a struct: two for each field, given its address, and the proxy, which holds it meanwhile. */
final class SwigNative {
    private SwigNative() {}

    static native int getPort(long address, SwigPacket proxy);

    static native void setPort(long address, SwigPacket proxy, int value);

    static native int getVlan(long address, SwigPacket proxy);

    static native void setVlan(long address, SwigPacket proxy, int value);

    static native long getLength(long address, SwigPacket proxy);

    static native void setLength(long address, SwigPacket proxy, long value);

    static native long getFlags(long address, SwigPacket proxy);

    static native void setFlags(long address, SwigPacket proxy, long value);

    static native int getKind(long address, SwigPacket proxy);

    static native void setKind(long address, SwigPacket proxy, int value);

    static native int getQueue(long address, SwigPacket proxy);

    static native void setQueue(long address, SwigPacket proxy, int value);

    static native long getHash(long address, SwigPacket proxy);

    static native void setHash(long address, SwigPacket proxy, long value);

    static native long getTime(long address, SwigPacket proxy);

    static native void setTime(long address, SwigPacket proxy, long value);

    static native int getHeadroom(long address, SwigPacket proxy);

    static native void setHeadroom(long address, SwigPacket proxy, int value);

    static native long getAddress(long address, SwigPacket proxy);

    static native void setAddress(long address, SwigPacket proxy, long value);

    static native long getNext(long address, SwigPacket proxy);

    static native void setNext(long address, SwigPacket proxy, long value);

    static native long getUser(long address, SwigPacket proxy);

    static native void setUser(long address, SwigPacket proxy, long value);
}
