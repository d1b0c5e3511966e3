package dev.tamis.bench;

import java.nio.ByteOrder;
import javolution.io.Struct;

/** The struct as Javolution declares one: a member object for each field, their order is the layout. */
final class JavolutionStruct extends Struct {
    final Unsigned8 port = new Unsigned8();
    final Unsigned16 vlan = new Unsigned16();
    final Unsigned32 length = new Unsigned32();
    final Signed64 flags = new Signed64();
    final Unsigned8 kind = new Unsigned8();
    final Unsigned16 queue = new Unsigned16();
    final Unsigned32 hash = new Unsigned32();
    final Signed64 time = new Signed64();
    final Unsigned16 headroom = new Unsigned16();
    final Signed64 address = new Signed64();
    final Signed64 next = new Signed64();
    final Signed64 user = new Signed64();

    @Override
    public boolean isPacked() {
        return true;
    }

    @Override
    public ByteOrder byteOrder() {
        return ByteOrder.nativeOrder();
    }
}
