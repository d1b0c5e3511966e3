import dev.tamis.*;
import java.nio.file.Path;

class QuickStart {
    public static void main(String[] arguments) {
        try (Dataplane dataplane = Dataplane.open(Path.of("live.toml"))) {
            System.out.println(dataplane.run(() -> packet -> packet.isUdp() ? Verdict.DROP : Verdict.PASS).wires());
        }
    }
}
