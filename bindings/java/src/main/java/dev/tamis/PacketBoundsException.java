package dev.tamis;

/**
 * Bytes that the packet does not have in memory, or a header that is not there. Nothing was read or
 * written.
 */
public final class PacketBoundsException extends IndexOutOfBoundsException {
    private static final long serialVersionUID = 1L;

    PacketBoundsException(String message) {
        super(message);
    }
}
