package dev.tamis.bench;

/**
 * The study's object: a field for each field. Native code calls its methods, or sets its fields, by name.
 */
final class Packet extends Fields {
    private int port;
    private int vlan;
    private long length;
    private long flags;
    private int kind;
    private int queue;
    private long hash;
    private long time;
    private int headroom;
    private long address;
    private long next;
    private long user;

    @Override
    int getPort() {
        return port;
    }

    @Override
    void setPort(int value) {
        port = value;
    }

    @Override
    int getVlan() {
        return vlan;
    }

    @Override
    void setVlan(int value) {
        vlan = value;
    }

    @Override
    long getLength() {
        return length;
    }

    @Override
    void setLength(long value) {
        length = value;
    }

    @Override
    long getFlags() {
        return flags;
    }

    @Override
    void setFlags(long value) {
        flags = value;
    }

    @Override
    int getKind() {
        return kind;
    }

    @Override
    void setKind(int value) {
        kind = value;
    }

    @Override
    int getQueue() {
        return queue;
    }

    @Override
    void setQueue(int value) {
        queue = value;
    }

    @Override
    long getHash() {
        return hash;
    }

    @Override
    void setHash(long value) {
        hash = value;
    }

    @Override
    long getTime() {
        return time;
    }

    @Override
    void setTime(long value) {
        time = value;
    }

    @Override
    int getHeadroom() {
        return headroom;
    }

    @Override
    void setHeadroom(int value) {
        headroom = value;
    }

    @Override
    long getAddress() {
        return address;
    }

    @Override
    void setAddress(long value) {
        address = value;
    }

    @Override
    long getNext() {
        return next;
    }

    @Override
    void setNext(long value) {
        next = value;
    }

    @Override
    long getUser() {
        return user;
    }

    @Override
    void setUser(long value) {
        user = value;
    }
}
