package dev.tamis.bench;

import com.sun.jna.Pointer;

/**
 * A struct by JNA's pointers, field by field.
 */
final class JnaView extends Fields {
    private Pointer pointer;

    /** Shows the struct at a pointer. */
    JnaView at(Pointer pointer) {
        this.pointer = pointer;
        return this;
    }

    @Override
    int getPort() {
        return pointer.getByte(PORT) & 0xFF;
    }

    @Override
    void setPort(int value) {
        pointer.setByte(PORT, (byte) value);
    }

    @Override
    int getVlan() {
        return pointer.getShort(VLAN) & 0xFFFF;
    }

    @Override
    void setVlan(int value) {
        pointer.setShort(VLAN, (short) value);
    }

    @Override
    long getLength() {
        return pointer.getInt(LENGTH) & 0xFFFF_FFFFL;
    }

    @Override
    void setLength(long value) {
        pointer.setInt(LENGTH, (int) value);
    }

    @Override
    long getFlags() {
        return pointer.getLong(FLAGS);
    }

    @Override
    void setFlags(long value) {
        pointer.setLong(FLAGS, value);
    }

    @Override
    int getKind() {
        return pointer.getByte(KIND) & 0xFF;
    }

    @Override
    void setKind(int value) {
        pointer.setByte(KIND, (byte) value);
    }

    @Override
    int getQueue() {
        return pointer.getShort(QUEUE) & 0xFFFF;
    }

    @Override
    void setQueue(int value) {
        pointer.setShort(QUEUE, (short) value);
    }

    @Override
    long getHash() {
        return pointer.getInt(HASH) & 0xFFFF_FFFFL;
    }

    @Override
    void setHash(long value) {
        pointer.setInt(HASH, (int) value);
    }

    @Override
    long getTime() {
        return pointer.getLong(TIME);
    }

    @Override
    void setTime(long value) {
        pointer.setLong(TIME, value);
    }

    @Override
    int getHeadroom() {
        return pointer.getShort(HEADROOM) & 0xFFFF;
    }

    @Override
    void setHeadroom(int value) {
        pointer.setShort(HEADROOM, (short) value);
    }

    @Override
    long getAddress() {
        return pointer.getLong(ADDRESS);
    }

    @Override
    void setAddress(long value) {
        pointer.setLong(ADDRESS, value);
    }

    @Override
    long getNext() {
        return pointer.getLong(NEXT);
    }

    @Override
    void setNext(long value) {
        pointer.setLong(NEXT, value);
    }

    @Override
    long getUser() {
        return pointer.getLong(USER);
    }

    @Override
    void setUser(long value) {
        pointer.setLong(USER, value);
    }
}
