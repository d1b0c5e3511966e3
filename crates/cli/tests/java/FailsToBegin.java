import dev.tamis.Context;
import dev.tamis.Handler;
import dev.tamis.Packet;
import dev.tamis.Verdict;

/** Throws before its first packet. */
public class FailsToBegin implements Handler {
    @Override
    public void init(Context context) {
        throw new IllegalStateException("no such table");
    }

    @Override
    public Verdict packet(Packet packet) {
        return Verdict.PASS;
    }
}
