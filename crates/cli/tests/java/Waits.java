import dev.tamis.Handler;
import dev.tamis.Packet;
import dev.tamis.Verdict;

/** Is idle, and ends as its run does; its JVM after it. */
public class Waits implements Handler {
    private boolean wasIdle;

    public Waits() {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.err.println("hook ran")));
    }

    @Override
    public Verdict packet(Packet packet) {
        return Verdict.PASS;
    }

    @Override
    public void idle(long now) {
        if (!wasIdle) {
            wasIdle = true;
            System.err.println("idle");
        }
    }

    @Override
    public void close() {
        System.err.println("closed");
    }
}
