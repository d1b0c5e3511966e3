package dev.tamis;

/** A run has refused a request. Nothing has changed. */
public final class RequestException extends TamisException {
    private static final long serialVersionUID = 1L;

    /** Why, in a word. */
    private final String kind;

    RequestException(String kind, String what) {
        super(what);
        this.kind = kind;
    }

    /**
     * Why, in a word of the control protocol.
     *
     * @return {@code request}, {@code refused}, {@code busy}, {@code text} or {@code stale}
     */
    public String kind() {
        return kind;
    }
}
