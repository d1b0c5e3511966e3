package dev.tamis;

import java.util.Objects;

/**
 * The bytes of a packet in the memory where they were received, and what is known of them as a
 * whole.
 *
 * <p>Offsets are from the first byte, link header included. Each access is compared with the
 * length: {@link PacketBoundsException} beyond it, {@link StalePacketException} after the burst.
 * Numbers are unsigned and in network byte order. It belongs to the thread of its worker: in
 * another one each access throws {@link StalePacketException}, and a copy is needed. With {@code
 * -Dtamis.unchecked=true} that is the handler's to see to: what is done in another thread may end
 * the process then.
 */
public abstract sealed class Frame permits Packet {
    /** Of the packet's descriptor; 0 after the burst. */
    private long descriptor;

    /** Of its first byte. */
    private long address;

    /** Bytes in memory; 0 after the burst. */
    private int length;

    /** Where its headers are and what they are: {@link Descriptor#HEADERS}. */
    private long headers;

    /** The thread of its worker. */
    private Thread owner;

    /** Another number whenever views taken before do not hold any more. */
    private long stamp;

    Frame() {}

    /** Belongs to this thread from now on. */
    final void own() {
        owner = Thread.currentThread();
    }

    /** Whether this thread is none that may look at it. */
    final boolean isForeign() {
        return owner != Thread.currentThread();
    }

    /** Points this at the packet of a descriptor. */
    final void point(long descriptor) {
        this.descriptor = descriptor;
        this.address = Mem.getLong(descriptor + Descriptor.ADDRESS);
        this.length = Mem.getInt(descriptor + Descriptor.LENGTH);
        this.headers = Mem.getLong(descriptor + Descriptor.HEADERS);
        this.stamp++;
    }

    /** From here on each access throws. */
    final void release() {
        descriptor = 0;
        address = 0;
        length = 0;
        stamp++;
    }

    final long stamp() {
        return stamp;
    }

    /** The address of {@code n} bytes from {@code offset} on, which the packet has. */
    final long at(int offset, int n) {
        if (View.CHECKED && (offset < 0 || offset > length - n || isForeign())) {
            throw outside(offset, n);
        }
        return address + offset;
    }

    /** The address of bytes from {@code offset} on that the caller has compared with the length. */
    final long proven(int offset) {
        return address + offset;
    }

    final RuntimeException outside(int offset, int n) {
        if (View.CHECKED && isForeign()) {
            return new StalePacketException(
                    "a packet is its worker's thread's; hand another one a copy()");
        }
        if (descriptor == 0) {
            return new StalePacketException(
                    "the burst of this packet is over; keep what is needed by copy()");
        }
        return new PacketBoundsException(
                "bytes " + offset + " to " + ((long) offset + n) + " of " + length);
    }

    final boolean isReleased() {
        return descriptor == 0;
    }

    private long headers() {
        descriptor();
        return headers;
    }

    private long descriptor() {
        if (descriptor == 0 || View.CHECKED && isForeign()) {
            throw outside(0, 0);
        }
        return descriptor;
    }

    /**
     * Its length in memory.
     *
     * @return bytes, link header included
     */
    public final int length() {
        descriptor();
        return length;
    }

    /**
     * Its length on the wire, which is more than {@link #length} where a capture cut it off.
     *
     * @return bytes
     */
    public final long wireLength() {
        return Mem.getInt(descriptor() + Descriptor.WIRE_LENGTH) & 0xFFFF_FFFFL;
    }

    /**
     * When it was received.
     *
     * @return nanoseconds since 1970
     */
    public final long time() {
        return Mem.getLong(descriptor() + Descriptor.TIME);
    }

    /**
     * Its number in its capture, or how many the port received before it.
     *
     * @return the number
     */
    public final long number() {
        return Mem.getLong(descriptor() + Descriptor.NUMBER);
    }

    /**
     * The wire that it is on.
     *
     * @return its number in the configuration, from 0
     */
    public final int wire() {
        return Mem.getShort(descriptor() + Descriptor.WIRE) & 0xFFFF;
    }

    /**
     * The end of the wire that it came in by.
     *
     * @return 0 for the first port of the wire, 1 for the second
     */
    public final int from() {
        return Mem.getByte(descriptor() + Descriptor.FROM) & 0xFF;
    }

    /**
     * The EtherType after VLAN tags.
     *
     * @return 16 bits
     */
    public final int etherType() {
        return Descriptor.etherType(headers());
    }

    /**
     * The protocol after the IP header and extension headers.
     *
     * @return its number, 255 where none is known
     */
    public final int protocol() {
        return Descriptor.protocol(headers());
    }

    /**
     * Where the IP header begins.
     *
     * @return bytes from the first one, or -1 if it has none
     */
    public final int networkOffset() {
        return offset(network());
    }

    /** The same, or {@link Descriptor#NONE}: 16 bits, so never negative. */
    final int network() {
        return Descriptor.network(headers());
    }

    /**
     * Where the header of TCP, UDP, ICMP or the like begins.
     *
     * @return bytes from the first one, or -1 if it has none, as fragments but the first
     */
    public final int transportOffset() {
        return offset(transport());
    }

    /** The same, or {@link Descriptor#NONE}. */
    final int transport() {
        return Descriptor.transport(headers());
    }

    private static int offset(int field) {
        return field == Descriptor.NONE ? -1 : field;
    }

    /**
     * Whether it is a part of a larger packet.
     *
     * @return true of each fragment, the first included
     */
    public final boolean isFragment() {
        return flag(Descriptor.FRAGMENT);
    }

    /**
     * Whether it is the first part of a larger packet, with the transport header.
     *
     * @return true of the first fragment alone
     */
    public final boolean isFirstFragment() {
        return flag(Descriptor.FIRST_FRAGMENT);
    }

    /**
     * Whether memory has fewer bytes than the wire had.
     *
     * @return whether it was cut off
     */
    public final boolean isTruncated() {
        return flag(Descriptor.TRUNCATED);
    }

    final boolean flag(int flag) {
        return (Descriptor.flags(headers()) & flag) != 0;
    }

    // Its bytes.

    /**
     * The byte there.
     *
     * @param offset from the first byte
     * @return 8 bits
     */
    public final int u8(int offset) {
        return Net.u8(at(offset, 1));
    }

    /**
     * The number in two bytes.
     *
     * @param offset of the first of them
     * @return 16 bits
     */
    public final int u16(int offset) {
        return Net.u16(at(offset, 2));
    }

    /**
     * The number in four bytes.
     *
     * @param offset of the first of them
     * @return 32 bits
     */
    public final long u32(int offset) {
        return Net.u32(at(offset, 4));
    }

    /**
     * The number in eight bytes, for {@link Long#compareUnsigned} and its like.
     *
     * @param offset of the first of them
     * @return 64 bits
     */
    public final long u64(int offset) {
        return Net.i64(at(offset, 8));
    }

    /**
     * Sets a byte. No checksum follows: {@link Packet#fixChecksums}.
     *
     * @param offset from the first byte
     * @param value 8 bits
     */
    public final void u8(int offset, int value) {
        View.require("u8", value, 0xFF);
        Net.put8(at(offset, 1), value);
    }

    /**
     * Sets two bytes. No checksum follows: {@link Packet#fixChecksums}.
     *
     * @param offset of the first of them
     * @param value 16 bits
     */
    public final void u16(int offset, int value) {
        View.require("u16", value, 0xFFFF);
        Net.put16(at(offset, 2), value);
    }

    /**
     * Sets four bytes. No checksum follows: {@link Packet#fixChecksums}.
     *
     * @param offset of the first of them
     * @param value 32 bits
     */
    public final void u32(int offset, long value) {
        View.require("u32", value, 0xFFFF_FFFFL);
        Net.put32(at(offset, 4), (int) value);
    }

    /**
     * Sets eight bytes. No checksum follows: {@link Packet#fixChecksums}.
     *
     * @param offset of the first of them
     * @param value 64 bits
     */
    public final void u64(int offset, long value) {
        Net.put64(at(offset, 8), value);
    }

    /**
     * Copies bytes out of it.
     *
     * @param offset of the first of them
     * @param into where they go
     * @param from the first index there
     * @param n how many
     */
    public final void read(int offset, byte[] into, int from, int n) {
        Objects.checkFromIndexSize(from, n, into.length);
        Mem.read(at(offset, n), into, from, n);
    }

    /**
     * Copies bytes into it. No checksum follows: {@link Packet#fixChecksums}.
     *
     * @param offset where the first of them goes
     * @param bytes where they are
     * @param from the first index there
     * @param n how many
     */
    public final void write(int offset, byte[] bytes, int from, int n) {
        Objects.checkFromIndexSize(from, n, bytes.length);
        Mem.write(at(offset, n), bytes, from, n);
    }

    /**
     * All of its bytes, to be kept.
     *
     * @return a new array
     */
    public final byte[] copy() {
        byte[] bytes = new byte[length()];
        read(0, bytes, 0, bytes.length);
        return bytes;
    }

    // Its length. Views that were taken before do not hold afterwards.

    /**
     * The bytes before the first one that {@link #prepend} can have.
     *
     * @return bytes
     */
    public final int headroom() {
        return Mem.getShort(descriptor() + Descriptor.HEADROOM) & 0xFFFF;
    }

    /**
     * The bytes after the last one that {@link #append} can have.
     *
     * @return bytes
     */
    public final int tailroom() {
        return Mem.getShort(descriptor() + Descriptor.TAILROOM) & 0xFFFF;
    }

    /**
     * Adds bytes before the first one; they are 0.
     *
     * @param n how many, {@link #headroom} at most
     */
    public final void prepend(int n) {
        room("headroom", n, headroom());
        move(-n);
        clear(address, n);
    }

    /**
     * Takes the first bytes away.
     *
     * @param n how many, {@link #length} at most
     */
    public final void trimFront(int n) {
        room("length", n, length());
        move(n);
    }

    /**
     * Adds bytes after the last one; they are 0.
     *
     * @param n how many, {@link #tailroom} at most
     */
    public final void append(int n) {
        room("tailroom", n, tailroom());
        clear(address + length, n);
        resize(n);
    }

    /**
     * Takes the last bytes away.
     *
     * @param n how many, {@link #length} at most
     */
    public final void trim(int n) {
        room("length", n, length());
        resize(-n);
    }

    private static void room(String what, int n, int most) {
        if (n < 0 || n > most) {
            throw new PacketBoundsException(n + " bytes of " + most + " (" + what + ")");
        }
    }

    /** The first byte is {@code n} bytes later. */
    private void move(int n) {
        address += n;
        length -= n;
        Mem.putLong(descriptor + Descriptor.ADDRESS, address);
        Mem.putInt(descriptor + Descriptor.LENGTH, length);
        putShort(Descriptor.HEADROOM, headroom() + n);
        header(Descriptor.NETWORK, networkOffset() - n);
        header(Descriptor.TRANSPORT, transportOffset() - n);
        headers = Mem.getLong(descriptor + Descriptor.HEADERS);
        stamp++;
    }

    /** There are {@code n} more bytes. */
    private void resize(int n) {
        length += n;
        Mem.putInt(descriptor + Descriptor.LENGTH, length);
        putShort(Descriptor.TAILROOM, tailroom() - n);
        stamp++;
    }

    /** A header that begins in bytes that are gone is not there any more. */
    private void header(int field, int offset) {
        if (Mem.getShort(descriptor + field) != (short) Descriptor.NONE) {
            putShort(field, offset < 0 ? Descriptor.NONE : offset);
        }
    }

    private void putShort(int field, int value) {
        Mem.putShort(descriptor + field, (short) Math.min(value, Descriptor.NONE));
    }

    private static void clear(long address, int n) {
        for (int i = 0; i < n; i++) {
            Net.put8(address + i, 0);
        }
    }
}
