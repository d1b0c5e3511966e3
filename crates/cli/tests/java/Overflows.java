import dev.tamis.Handler;
import dev.tamis.Packet;
import dev.tamis.Verdict;

/** Uses up its stack over each packet of UDP, and asks a null of the others often enough to be compiled. */
public class Overflows implements Handler {
    private Object nothing;
    private long caught;

    private long deeper(long depth) {
        return deeper(depth + 1) + 1;
    }

    @Override
    public Verdict packet(Packet packet) {
        if (packet.isUdp()) {
            caught += deeper(0);
        }
        for (int i = 0; i < 1000; i++) {
            try {
                caught += nothing.hashCode();
            } catch (NullPointerException e) {
                caught++;
            }
        }
        return Verdict.PASS;
    }
}
