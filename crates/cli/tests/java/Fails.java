import dev.tamis.Handler;
import dev.tamis.Packet;
import dev.tamis.Verdict;

/** Throws over each packet of TCP. */
public class Fails implements Handler {
    @Override
    public Verdict packet(Packet packet) {
        if (packet.isTcp()) {
            throw new IllegalStateException("over TCP");
        }
        return Verdict.PASS;
    }
}
