package dev.tamis;

/**
 * What went wrong, in the words of the command line: a configuration, a rule, a port or a capture.
 */
public class TamisException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /**
     * An error with its message.
     *
     * @param message what is wrong, with file, line and column where it has them
     */
    public TamisException(String message) {
        super(message);
    }

    /**
     * An error that another one caused.
     *
     * @param message what is wrong
     * @param cause why
     */
    public TamisException(String message, Throwable cause) {
        super(message, cause);
    }
}
