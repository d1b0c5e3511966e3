package dev.tamis.bench;

/** A struct by the members of a {@link JavolutionStruct}. */
final class JavolutionView extends Fields {
    private final JavolutionStruct struct;

    JavolutionView(JavolutionStruct struct) {
        this.struct = struct;
    }

    @Override
    int getPort() {
        return struct.port.get();
    }

    @Override
    void setPort(int value) {
        struct.port.set((short) value);
    }

    @Override
    int getVlan() {
        return struct.vlan.get();
    }

    @Override
    void setVlan(int value) {
        struct.vlan.set(value);
    }

    @Override
    long getLength() {
        return struct.length.get();
    }

    @Override
    void setLength(long value) {
        struct.length.set(value);
    }

    @Override
    long getFlags() {
        return struct.flags.get();
    }

    @Override
    void setFlags(long value) {
        struct.flags.set(value);
    }

    @Override
    int getKind() {
        return struct.kind.get();
    }

    @Override
    void setKind(int value) {
        struct.kind.set((short) value);
    }

    @Override
    int getQueue() {
        return struct.queue.get();
    }

    @Override
    void setQueue(int value) {
        struct.queue.set(value);
    }

    @Override
    long getHash() {
        return struct.hash.get();
    }

    @Override
    void setHash(long value) {
        struct.hash.set(value);
    }

    @Override
    long getTime() {
        return struct.time.get();
    }

    @Override
    void setTime(long value) {
        struct.time.set(value);
    }

    @Override
    int getHeadroom() {
        return struct.headroom.get();
    }

    @Override
    void setHeadroom(int value) {
        struct.headroom.set(value);
    }

    @Override
    long getAddress() {
        return struct.address.get();
    }

    @Override
    void setAddress(long value) {
        struct.address.set(value);
    }

    @Override
    long getNext() {
        return struct.next.get();
    }

    @Override
    void setNext(long value) {
        struct.next.set(value);
    }

    @Override
    long getUser() {
        return struct.user.get();
    }

    @Override
    void setUser(long value) {
        struct.user.set(value);
    }
}
