package dev.tamis.examples;

import dev.tamis.Address;

/** An IPv4 network: the first {@code bits} of an address. */
record Prefix(long address, int bits) {
    /** A network of text, such as {@code 192.0.2.0/24}, or one address. */
    static Prefix of(String text) {
        int slash = text.indexOf('/');
        int bits = slash < 0 ? 32 : Integer.parseInt(text.substring(slash + 1));
        if (bits < 0 || bits > 32) {
            throw new IllegalArgumentException("expected 0 to 32 bits, found \"" + text + "\"");
        }
        return new Prefix(Address.ipv4(slash < 0 ? text : text.substring(0, slash)), bits);
    }

    /** Whether an address is in it. */
    boolean has(long other) {
        return bits == 0 || (address ^ other) >>> 32 - bits == 0;
    }
}
