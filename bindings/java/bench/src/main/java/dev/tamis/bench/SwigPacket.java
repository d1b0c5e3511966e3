package dev.tamis.bench;

/**
 * A struct as Swig's proxies show it: an object that holds the struct's address and calls a native function for each field.
 *
 * <p>Contract: written as Swig 4.1 writes one for a struct whose fields of 8 bytes are {@code int64_t}; an unsigned one would
 * be a {@code BigInteger}. Its finalizer, which registers each object with the collector, is Swig's.
 */
final class SwigPacket extends Fields {
    private transient long address;
    private transient boolean isOwned;

    SwigPacket(long address, boolean isOwned) {
        this.isOwned = isOwned;
        this.address = address;
    }

    @Override
    @SuppressWarnings({"deprecation", "removal"})
    protected void finalize() {
        delete();
    }

    /** Forgets the struct, which is the pool's. */
    synchronized void delete() {
        if (address != 0) {
            isOwned = false;
            address = 0;
        }
    }

    @Override
    int getPort() {
        return SwigNative.getPort(address, this);
    }

    @Override
    void setPort(int value) {
        SwigNative.setPort(address, this, value);
    }

    @Override
    int getVlan() {
        return SwigNative.getVlan(address, this);
    }

    @Override
    void setVlan(int value) {
        SwigNative.setVlan(address, this, value);
    }

    @Override
    long getLength() {
        return SwigNative.getLength(address, this);
    }

    @Override
    void setLength(long value) {
        SwigNative.setLength(address, this, value);
    }

    @Override
    long getFlags() {
        return SwigNative.getFlags(address, this);
    }

    @Override
    void setFlags(long value) {
        SwigNative.setFlags(address, this, value);
    }

    @Override
    int getKind() {
        return SwigNative.getKind(address, this);
    }

    @Override
    void setKind(int value) {
        SwigNative.setKind(address, this, value);
    }

    @Override
    int getQueue() {
        return SwigNative.getQueue(address, this);
    }

    @Override
    void setQueue(int value) {
        SwigNative.setQueue(address, this, value);
    }

    @Override
    long getHash() {
        return SwigNative.getHash(address, this);
    }

    @Override
    void setHash(long value) {
        SwigNative.setHash(address, this, value);
    }

    @Override
    long getTime() {
        return SwigNative.getTime(address, this);
    }

    @Override
    void setTime(long value) {
        SwigNative.setTime(address, this, value);
    }

    @Override
    int getHeadroom() {
        return SwigNative.getHeadroom(address, this);
    }

    @Override
    void setHeadroom(int value) {
        SwigNative.setHeadroom(address, this, value);
    }

    @Override
    long getAddress() {
        return SwigNative.getAddress(address, this);
    }

    @Override
    void setAddress(long value) {
        SwigNative.setAddress(address, this, value);
    }

    @Override
    long getNext() {
        return SwigNative.getNext(address, this);
    }

    @Override
    void setNext(long value) {
        SwigNative.setNext(address, this, value);
    }

    @Override
    long getUser() {
        return SwigNative.getUser(address, this);
    }

    @Override
    void setUser(long value) {
        SwigNative.setUser(address, this, value);
    }
}
