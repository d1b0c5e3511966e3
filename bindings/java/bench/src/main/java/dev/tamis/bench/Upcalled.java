package dev.tamis.bench;

/** What native code calls for each burst, where it is the one that polls. */
final class Upcalled {
    private final FrameView view;

    Upcalled(FrameView view) {
        this.view = view;
    }

    /** So many frames wait. Nothing is thrown, as nobody would take it. */
    void burst(int polled) {
        for (int i = 0; i < polled; i++) {
            view.point(i);
            view.putVerdict(Nat.handle(view));
        }
    }
}
