package dev.tamis;

/** What a handler has done with a packet. */
public enum Verdict {
    /** It goes on its way. */
    PASS,
    /** It is dropped, and counted as {@code middlebox}. */
    DROP,
    /** It leaves by the port that it came in by. */
    BACK;
}
