package dev.tamis.bench;

import static java.nio.ByteOrder.nativeOrder;

import java.nio.ByteBuffer;
import java.util.Map;
import java.util.function.LongFunction;

/**
 * The study's byte buffers: native code copies the struct into one, Java copies it into a {@link Packet}, and both copy it
 * back. Direct or on the heap, in native order or the one that buffers have by default. Then buffers without copies: a
 * mapping of the whole pool.
 */
final class BufferTechniques {
    private BufferTechniques() {}

    static void addTo(Map<String, LongFunction<Technique>> all) {
        all.put("buffer_direct_big_endian", pool -> {
            ByteBuffer buffer = ByteBuffer.allocateDirect(Fields.PACKED_SIZE);
            SwappedView view = new SwappedView(buffer);
            return packets -> direct(pool, packets, buffer, view);
        });
        all.put("buffer_direct", pool -> {
            ByteBuffer buffer = ByteBuffer.allocateDirect(Fields.PACKED_SIZE).order(nativeOrder());
            BufferView view = new BufferView(buffer);
            return packets -> direct(pool, packets, buffer, view);
        });
        all.put("buffer_heap_big_endian", pool -> {
            byte[] array = new byte[Fields.PACKED_SIZE];
            SwappedView view = new SwappedView(ByteBuffer.wrap(array));
            return packets -> heap(pool, packets, array, view);
        });
        all.put("buffer_heap", pool -> {
            byte[] array = new byte[Fields.PACKED_SIZE];
            BufferView view = new BufferView(ByteBuffer.wrap(array).order(nativeOrder()));
            return packets -> heap(pool, packets, array, view);
        });
        all.put("mapped_buffer", pool -> {
            BufferView view = new BufferView(Native.mapping(pool).order(nativeOrder()));
            return packets -> mapped(pool, packets, view);
        });
        all.put("mapped_varhandle", pool -> {
            HandleView view = new HandleView(Native.mapping(pool));
            return packets -> handles(pool, packets, view);
        });
    }

    private static long direct(long pool, int packets, ByteBuffer buffer, Fields view) {
        long sum = 0;
        for (int i = 0; i < packets; i++) {
            Packet packet = new Packet();
            Native.takeBuffer(pool, buffer);
            view.copyTo(packet);
            sum += packet.change();
            packet.copyTo(view);
            Native.giveBuffer(pool, buffer);
        }
        return sum;
    }

    private static long heap(long pool, int packets, byte[] array, Fields view) {
        long sum = 0;
        for (int i = 0; i < packets; i++) {
            Packet packet = new Packet();
            Native.takeArray(pool, array);
            view.copyTo(packet);
            sum += packet.change();
            packet.copyTo(view);
            Native.giveArray(pool, array);
        }
        return sum;
    }

    private static long mapped(long pool, int packets, BufferView view) {
        long base = Native.base(pool);
        long burst = Native.burst(pool);
        long sum = 0;
        for (int left = packets; left > 0; ) {
            int polled = Native.poll(pool, Math.min(left, Technique.BURST));
            for (int i = 0; i < polled; i++) {
                sum += view.at((int) (Memory.UNSAFE.getLong(burst + i * 8L) - base)).change();
            }
            left -= polled;
        }
        return sum;
    }

    private static long handles(long pool, int packets, HandleView view) {
        long base = Native.base(pool);
        long burst = Native.burst(pool);
        long sum = 0;
        for (int left = packets; left > 0; ) {
            int polled = Native.poll(pool, Math.min(left, Technique.BURST));
            for (int i = 0; i < polled; i++) {
                sum += view.at((int) (Memory.UNSAFE.getLong(burst + i * 8L) - base)).change();
            }
            left -= polled;
        }
        return sum;
    }
}
