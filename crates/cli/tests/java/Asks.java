import dev.tamis.Context;
import dev.tamis.Handler;
import dev.tamis.Packet;
import dev.tamis.Run;
import dev.tamis.Tamis;
import dev.tamis.Verdict;

import java.nio.file.Path;

/** Bans the source of its first packet, and says what the run that it is in has to say. */
public class Asks implements Handler {
    private Run run;
    private boolean hasAsked;

    @Override
    public void init(Context context) {
        run = context.run();
    }

    @Override
    public Verdict packet(Packet packet) {
        if (!hasAsked) {
            hasAsked = true;
            run.rules().ban("10.20.0.0/16");
            System.err.println("asked: workers " + run.status().workers().size());
            System.err.println("asked: " + run.request("{\"command\": \"bans_list\", \"most\": 9}"));
            Path rules = Path.of(System.getProperty("rules"));
            Path capture = Path.of(System.getProperty("capture"));
            System.err.println("asked: replayed " + Tamis.replay(rules, capture).packets());
            System.err.println("asked: why " + Tamis.why(rules, capture, 1).verdict());
        }
        return Verdict.PASS;
    }

    @Override
    public void close() {
        System.err.println("asked: failed " + run.failed());
    }
}
