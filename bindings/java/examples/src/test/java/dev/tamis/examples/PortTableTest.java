package dev.tamis.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

import java.util.HashMap;
import java.util.Map;
import java.util.Random;

/** The table of ports, held to two maps that do the same slowly. */
class PortTableTest {
    private static final long SILENCE = 1000;

    /** The slow one. */
    private static final class Model {
        private final Map<Long, Integer> outside = new HashMap<>();
        private final Map<Integer, Long> inside = new HashMap<>();
        private final Map<Integer, Long> usedAt = new HashMap<>();
        private final int last;

        Model(int last) {
            this.last = last;
        }

        int outside(long address, int port, long now) {
            long owner = address << 16 | port;
            Integer known = outside.get(owner);
            if (known != null) {
                usedAt.put(known, now);
                return known;
            }
            int wanted = Math.min(Math.max(port, 1), last);
            for (int i = 0; i < last; i++, wanted = wanted == last ? 1 : wanted + 1) {
                if (!inside.containsKey(wanted) || now - usedAt.get(wanted) > SILENCE) {
                    outside.remove(inside.get(wanted));
                    outside.put(owner, wanted);
                    inside.put(wanted, owner);
                    usedAt.put(wanted, now);
                    return wanted;
                }
            }
            return -1;
        }

        long inside(int port, long now) {
            if (!inside.containsKey(port) || now - usedAt.get(port) > SILENCE) {
                return -1;
            }
            usedAt.put(port, now);
            return inside.get(port);
        }
    }

    @Test
    void itIsTheModels() {
        int[] lasts = {0xFFFF, 100, 1};
        for (int last : lasts) {
            Random random = new Random(last);
            PortTable table = new PortTable(SILENCE, last);
            Model model = new Model(last);
            long now = 0;
            for (int i = 0; i < 200_000; i++) {
                now += random.nextInt(4) == 0 ? random.nextInt(100) : 0;
                // Few ports, so that owners meet, and the table of 100 is full for a while.
                int port = (65500 + random.nextInt(50)) % (1 << 16);
                if (random.nextInt(3) > 0) {
                    long address = random.nextInt(40);
                    assertEquals(
                            model.outside(address, port, now), table.outside(address, port, now));
                } else {
                    assertEquals(model.inside(port, now), table.inside(port, now));
                }
            }
        }
    }
}
