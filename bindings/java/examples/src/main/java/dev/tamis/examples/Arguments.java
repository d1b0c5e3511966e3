package dev.tamis.examples;

import dev.tamis.Status;

/** What the examples' command lines have in common. */
final class Arguments {
    private Arguments() {}

    /** Ends the program with its usage where arguments are missing. */
    static void expect(String[] arguments, int least, String usage) {
        if (arguments.length < least) {
            System.err.println("usage: " + usage);
            System.exit(2);
        }
    }

    /** Prints what a run came to. */
    static void print(Status status) {
        for (Status.Direction wire : status.wires()) {
            System.out.println(
                    wire.in()
                            + " > "
                            + wire.out()
                            + ": received "
                            + wire.received()
                            + ", sent "
                            + wire.sent()
                            + ", dropped "
                            + wire.dropped());
        }
    }
}
