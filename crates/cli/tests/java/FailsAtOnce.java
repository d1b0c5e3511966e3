import dev.tamis.Handler;
import dev.tamis.Packet;
import dev.tamis.Verdict;

/** Cannot be made. */
public class FailsAtOnce implements Handler {
    public FailsAtOnce() {
        throw new IllegalStateException("no such list");
    }

    @Override
    public Verdict packet(Packet packet) {
        return Verdict.PASS;
    }
}
