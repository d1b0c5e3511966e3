package dev.tamis.bench;

import static dev.tamis.bench.Layouts.BYTE;
import static dev.tamis.bench.Layouts.INT;
import static dev.tamis.bench.Layouts.LONG;
import static dev.tamis.bench.Layouts.SHORT;

import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.VarHandle;

/**
 * A struct as {@code java.lang.foreign} would have it: a layout with names, and a handle for each of them.
 */
final class StructView extends Fields {
    private static final StructLayout LAYOUT = MemoryLayout.structLayout(
            BYTE.withName("port"),
            SHORT.withName("vlan"),
            INT.withName("length"),
            LONG.withName("flags"),
            BYTE.withName("kind"),
            SHORT.withName("queue"),
            INT.withName("hash"),
            LONG.withName("time"),
            SHORT.withName("headroom"),
            LONG.withName("address"),
            LONG.withName("next"),
            LONG.withName("user"));

    private static final VarHandle PORT_HANDLE = handle("port");
    private static final VarHandle VLAN_HANDLE = handle("vlan");
    private static final VarHandle LENGTH_HANDLE = handle("length");
    private static final VarHandle FLAGS_HANDLE = handle("flags");
    private static final VarHandle KIND_HANDLE = handle("kind");
    private static final VarHandle QUEUE_HANDLE = handle("queue");
    private static final VarHandle HASH_HANDLE = handle("hash");
    private static final VarHandle TIME_HANDLE = handle("time");
    private static final VarHandle HEADROOM_HANDLE = handle("headroom");
    private static final VarHandle ADDRESS_HANDLE = handle("address");
    private static final VarHandle NEXT_HANDLE = handle("next");
    private static final VarHandle USER_HANDLE = handle("user");

    private final MemorySegment memory;
    private MemorySegment struct;

    StructView(MemorySegment memory) {
        this.memory = memory;
        this.struct = memory.asSlice(0, LAYOUT);
    }

    private static VarHandle handle(String name) {
        return LAYOUT.varHandle(MemoryLayout.PathElement.groupElement(name));
    }

    /** Shows the struct at an offset of the segment, by a slice of its own. */
    StructView at(long offset) {
        struct = memory.asSlice(offset, LAYOUT);
        return this;
    }

    @Override
    int getPort() {
        return (byte) PORT_HANDLE.get(struct, 0L) & 0xFF;
    }

    @Override
    void setPort(int value) {
        PORT_HANDLE.set(struct, 0L, (byte) value);
    }

    @Override
    int getVlan() {
        return (short) VLAN_HANDLE.get(struct, 0L) & 0xFFFF;
    }

    @Override
    void setVlan(int value) {
        VLAN_HANDLE.set(struct, 0L, (short) value);
    }

    @Override
    long getLength() {
        return (int) LENGTH_HANDLE.get(struct, 0L) & 0xFFFF_FFFFL;
    }

    @Override
    void setLength(long value) {
        LENGTH_HANDLE.set(struct, 0L, (int) value);
    }

    @Override
    long getFlags() {
        return (long) FLAGS_HANDLE.get(struct, 0L);
    }

    @Override
    void setFlags(long value) {
        FLAGS_HANDLE.set(struct, 0L, value);
    }

    @Override
    int getKind() {
        return (byte) KIND_HANDLE.get(struct, 0L) & 0xFF;
    }

    @Override
    void setKind(int value) {
        KIND_HANDLE.set(struct, 0L, (byte) value);
    }

    @Override
    int getQueue() {
        return (short) QUEUE_HANDLE.get(struct, 0L) & 0xFFFF;
    }

    @Override
    void setQueue(int value) {
        QUEUE_HANDLE.set(struct, 0L, (short) value);
    }

    @Override
    long getHash() {
        return (int) HASH_HANDLE.get(struct, 0L) & 0xFFFF_FFFFL;
    }

    @Override
    void setHash(long value) {
        HASH_HANDLE.set(struct, 0L, (int) value);
    }

    @Override
    long getTime() {
        return (long) TIME_HANDLE.get(struct, 0L);
    }

    @Override
    void setTime(long value) {
        TIME_HANDLE.set(struct, 0L, value);
    }

    @Override
    int getHeadroom() {
        return (short) HEADROOM_HANDLE.get(struct, 0L) & 0xFFFF;
    }

    @Override
    void setHeadroom(int value) {
        HEADROOM_HANDLE.set(struct, 0L, (short) value);
    }

    @Override
    long getAddress() {
        return (long) ADDRESS_HANDLE.get(struct, 0L);
    }

    @Override
    void setAddress(long value) {
        ADDRESS_HANDLE.set(struct, 0L, value);
    }

    @Override
    long getNext() {
        return (long) NEXT_HANDLE.get(struct, 0L);
    }

    @Override
    void setNext(long value) {
        NEXT_HANDLE.set(struct, 0L, value);
    }

    @Override
    long getUser() {
        return (long) USER_HANDLE.get(struct, 0L);
    }

    @Override
    void setUser(long value) {
        USER_HANDLE.set(struct, 0L, value);
    }
}
