package dev.tamis;

import java.net.InetAddress;
import java.net.UnknownHostException;

/** IP addresses as views have them, and as people write them. */
public final class Address {
    private Address() {}

    /**
     * An IPv4 address of text.
     *
     * @param text such as {@code 192.0.2.1}
     * @return 32 bits
     * @throws IllegalArgumentException if the text is no such address
     */
    public static long ipv4(String text) {
        String[] parts = text.split("\\.", -1);
        long address = 0;
        for (String part : parts) {
            if (!part.matches("[0-9]{1,3}") || Integer.parseInt(part) > 255) {
                throw new IllegalArgumentException(
                        "expected an IPv4 address, found \"" + text + "\"");
            }
            address = address << 8 | Integer.parseInt(part);
        }
        if (parts.length != 4) {
            throw new IllegalArgumentException("expected an IPv4 address, found \"" + text + "\"");
        }
        return address;
    }

    /**
     * An IPv4 address as text.
     *
     * @param address 32 bits
     * @return such as {@code 192.0.2.1}
     */
    public static String text(long address) {
        return (address >>> 24 & 0xFF)
                + "."
                + (address >>> 16 & 0xFF)
                + "."
                + (address >>> 8 & 0xFF)
                + "."
                + (address & 0xFF);
    }

    /**
     * An IPv6 address as text.
     *
     * @param high its first 64 bits
     * @param low its last 64 bits
     * @return such as {@code 2001:db8:0:0:0:0:0:1}
     */
    public static String text(long high, long low) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 8; i++) {
            long half = i < 4 ? high : low;
            text.append(i == 0 ? "" : ":")
                    .append(Long.toHexString(half >>> 48 - i % 4 * 16 & 0xFFFF));
        }
        return text.toString();
    }

    /**
     * Both halves of an IPv6 address of text.
     *
     * @param text such as {@code 2001:db8::1}
     * @return the first 64 bits, and the last ones
     * @throws IllegalArgumentException if the text is no such address
     */
    public static long[] ipv6(String text) {
        byte[] bytes = text.indexOf(':') < 0 ? new byte[0] : literal(text);
        if (bytes.length != 16) {
            throw new IllegalArgumentException("expected an IPv6 address, found \"" + text + "\"");
        }
        long[] halves = new long[2];
        for (int i = 0; i < 16; i++) {
            halves[i / 8] = halves[i / 8] << 8 | bytes[i] & 0xFF;
        }
        return halves;
    }

    /** What has a colon is never looked up as a name. */
    private static byte[] literal(String text) {
        try {
            return InetAddress.getByName(text).getAddress();
        } catch (UnknownHostException e) {
            return new byte[0];
        }
    }
}
