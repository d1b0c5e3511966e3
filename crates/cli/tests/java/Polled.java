import dev.tamis.Dataplane;

import java.nio.file.Path;

/** The same handler where Java hosts the run. */
public class Polled {
    public static void main(String[] arguments) {
        try (Dataplane dataplane = Dataplane.open(Path.of(arguments[0]))) {
            dataplane.run(Shapes::new);
        }
    }
}
