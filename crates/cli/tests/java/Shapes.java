import dev.tamis.Context;
import dev.tamis.Handler;
import dev.tamis.Packet;
import dev.tamis.Verdict;

/** Drops questions to name servers and shortens the life of what else is IPv4; says at its end what it saw. */
public class Shapes implements Handler {
    private Context context;
    private long packets;

    @Override
    public void init(Context context) {
        this.context = context;
    }

    @Override
    public Verdict packet(Packet packet) {
        packets++;
        if (packet.isUdp() && packet.udp().destinationPort() == 53) {
            return Verdict.DROP;
        }
        if (packet.isIpv4()) {
            packet.ipv4().ttl(17);
        }
        return Verdict.PASS;
    }

    @Override
    public void close() {
        System.err.println("worker " + context.worker() + " of " + context.workers() + " saw " + packets);
    }
}
