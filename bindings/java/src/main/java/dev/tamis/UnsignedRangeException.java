package dev.tamis;

/** A value that does not fit its field. Nothing was written. */
public final class UnsignedRangeException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    /** The field that was to be written. */
    private final String field;

    /** What was to be written. */
    private final long value;

    /** The largest value that fits. */
    private final long max;

    UnsignedRangeException(String field, long value, long max) {
        super(field + ": expected 0 to " + max + ", found " + value);
        this.field = field;
        this.value = value;
        this.max = max;
    }

    /**
     * The field that was to be written.
     *
     * @return its name
     */
    public String field() {
        return field;
    }

    /**
     * The value that does not fit.
     *
     * @return the value
     */
    public long value() {
        return value;
    }

    /**
     * The largest value that fits.
     *
     * @return the maximum
     */
    public long max() {
        return max;
    }
}
