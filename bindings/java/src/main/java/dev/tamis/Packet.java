package dev.tamis;

/**
 * One packet in the memory where it was received, until its burst is over.
 *
 * <p>A burst has one object of this class and points it at one packet after the other, so nothing
 * is allocated; keep a {@linkplain #copy() copy} of what is needed longer. Where the bytes are is
 * proven once by the native side; each access is compared with the packet's length, throws {@link
 * PacketBoundsException} beyond it, and {@link StalePacketException} after the burst.
 *
 * <p>A view such as {@link #ipv4} throws {@link PacketBoundsException} where the packet does not
 * have that header, whole and in memory, and {@code isIpv4} and its like say whether it has.
 */
public final class Packet extends Frame {
    private static final int ETHER_TYPE_ARP = 0x0806;
    private static final int MAX_TAGS = 8;
    private static final int ICMP = 1;
    private static final int TCP = 6;
    private static final int UDP = 17;
    private static final int DCCP = 33;
    private static final int ICMPV6 = 58;
    private static final int UDP_LITE = 136;

    private final Ethernet ethernet = new Ethernet(this);
    private final Vlan vlan = new Vlan(this);
    private final Arp arp = new Arp(this);
    private final Ipv4 ipv4 = new Ipv4(this);
    private final Ipv6 ipv6 = new Ipv6(this);
    private final Tcp tcp = new Tcp(this);
    private final Udp udp = new Udp(this);
    private final Icmp icmp = new Icmp(this);

    private final Burst burst;

    Packet(Burst burst) {
        this.burst = burst;
    }

    /**
     * Says what happens to it, in a handler that takes {@linkplain Handler#burst bursts}.
     *
     * @param verdict what happens to it
     */
    public void verdict(Verdict verdict) {
        length();
        burst.verdict(verdict);
    }

    /**
     * Whether {@link #ethernet} has a header to show.
     *
     * @return false of ports without a link header, such as TUN devices
     */
    public boolean isEthernet() {
        return !flag(Descriptor.NOT_ETHERNET) && length() >= Ethernet.LENGTH;
    }

    /**
     * The Ethernet header.
     *
     * @return the view, which is this packet's
     */
    public Ethernet ethernet() {
        if (!isEthernet()) {
            throw lacks("Ethernet header");
        }
        return pointed(ethernet, 0);
    }

    /**
     * How many VLAN tags it has, 8 at most.
     *
     * @return the number of tags
     */
    public int vlans() {
        int tags = 0;
        while (tags < MAX_TAGS && isEthernet() && hasTag(tags)) {
            tags++;
        }
        return tags;
    }

    /**
     * A VLAN tag.
     *
     * @param depth 0 for the outer one, less than {@link #vlans}
     * @return the view, which is this packet's
     */
    public Vlan vlan(int depth) {
        if (depth < 0 || depth >= vlans()) {
            throw lacks("VLAN tag");
        }
        return pointed(vlan, Ethernet.LENGTH + depth * Vlan.LENGTH);
    }

    private boolean hasTag(int depth) {
        int at = Ethernet.LENGTH + depth * Vlan.LENGTH;
        return length() >= at + Vlan.LENGTH && Vlan.isTag(u16(at - 2));
    }

    /**
     * Whether it is an ARP packet for IPv4 over Ethernet.
     *
     * @return whether {@link #arp} has a packet to show
     */
    public boolean isArp() {
        if (etherType() != ETHER_TYPE_ARP || !isEthernet()) {
            return false;
        }
        int at = Ethernet.LENGTH + vlans() * Vlan.LENGTH;
        return length() >= at + Arp.LENGTH && u64(at) >>> 16 == 0x0001_0800_0604L;
    }

    /**
     * The ARP packet.
     *
     * @return the view, which is this packet's
     */
    public Arp arp() {
        if (!isArp()) {
            throw lacks("ARP packet");
        }
        return pointed(arp, Ethernet.LENGTH + vlans() * Vlan.LENGTH);
    }

    /**
     * Whether it has an IPv4 header.
     *
     * @return whether {@link #ipv4} has a header to show
     */
    public boolean isIpv4() {
        return isVersion(4, Ipv4.LENGTH);
    }

    /**
     * The IPv4 header.
     *
     * @return the view, which is this packet's
     */
    public Ipv4 ipv4() {
        if (!isIpv4()) {
            throw lacks("IPv4 header");
        }
        return pointed(ipv4, network());
    }

    /**
     * Whether it has an IPv6 header.
     *
     * @return whether {@link #ipv6} has a header to show
     */
    public boolean isIpv6() {
        return isVersion(6, Ipv6.LENGTH);
    }

    /**
     * The IPv6 header.
     *
     * @return the view, which is this packet's
     */
    public Ipv6 ipv6() {
        if (!isIpv6()) {
            throw lacks("IPv6 header");
        }
        return pointed(ipv6, network());
    }

    private boolean isVersion(int version, int least) {
        int at = network();
        return isAt(at, least) && Net.u8(proven(at)) >>> 4 == version;
    }

    /**
     * Whether it has a TCP header: fragments but the first have none.
     *
     * @return whether {@link #tcp} has a header to show
     */
    public boolean isTcp() {
        return protocol() == TCP && hasTransport(Tcp.LENGTH);
    }

    /**
     * The TCP header.
     *
     * @return the view, which is this packet's
     */
    public Tcp tcp() {
        if (!isTcp()) {
            throw lacks("TCP header");
        }
        return pointed(tcp, transport());
    }

    /**
     * Whether it has a UDP header: fragments but the first have none.
     *
     * @return whether {@link #udp} has a header to show
     */
    public boolean isUdp() {
        return protocol() == UDP && hasTransport(Udp.LENGTH);
    }

    /**
     * The UDP header.
     *
     * @return the view, which is this packet's
     */
    public Udp udp() {
        if (!isUdp()) {
            throw lacks("UDP header");
        }
        return pointed(udp, transport());
    }

    /**
     * Whether it is an ICMP message over IPv4, or an ICMPv6 message.
     *
     * @return whether {@link #icmp} has a header to show
     */
    public boolean isIcmp() {
        int protocol = protocol();
        return (protocol == ICMP || protocol == ICMPV6) && hasTransport(Icmp.LENGTH);
    }

    /**
     * The header of an ICMP or ICMPv6 message.
     *
     * @return the view, which is this packet's
     */
    public Icmp icmp() {
        if (!isIcmp()) {
            throw lacks("ICMP header");
        }
        return pointed(icmp, transport());
    }

    private boolean hasTransport(int least) {
        return isAt(transport(), least);
    }

    /** Whether there is a header, and so many bytes of it. */
    private boolean isAt(int offset, int least) {
        return offset != Descriptor.NONE && offset <= length() - least;
    }

    private <V extends View> V pointed(V view, int offset) {
        view.point(proven(offset), offset, stamp());
        return view;
    }

    private RuntimeException lacks(String header) {
        return isReleased()
                ? outside(0, 0)
                : new PacketBoundsException("this packet has no whole " + header);
    }

    // Its checksums.

    /**
     * Computes the checksums of IPv4, TCP, UDP, ICMP and ICMPv6 anew, of those headers that the
     * packet has. A checksum of TCP, UDP or ICMP stays as it is where it covers bytes that are not
     * in memory, be they cut off or in other fragments, and so does one of UDP that is 0.
     */
    public void fixChecksums() {
        FullChecksum.fix(this);
    }

    /**
     * A part of the address has changed, so the checksum that covers it changes, too. Both are in
     * the host's byte order.
     */
    void addressChanged(int before, int after) {
        int at = transportChecksum();
        if (at >= 0) {
            int checksum = Net.raw16(proven(at));
            putTransportChecksum(at, checksum, Checksum.update32(checksum, before, after));
        }
    }

    /** The same for 64 bits. */
    void addressChanged(long before, long after) {
        int at = transportChecksum();
        if (at >= 0) {
            int checksum = Net.raw16(proven(at));
            putTransportChecksum(at, checksum, Checksum.update64(checksum, before, after));
        }
    }

    private void putTransportChecksum(int at, int before, int after) {
        if (protocol() != UDP) {
            Net.putRaw16(proven(at), after);
        } else if (before != 0) {
            Net.putRaw16(proven(at), Udp.shown(after));
        }
    }

    /**
     * Where the checksum that covers the addresses is, or -1 if none does or it is not in memory.
     */
    private int transportChecksum() {
        int in =
                switch (protocol()) {
                    case TCP -> Tcp.CHECKSUM;
                    case UDP, UDP_LITE, DCCP -> Udp.CHECKSUM;
                    case ICMPV6 -> isIpv6() ? Icmp.CHECKSUM : -1;
                    default -> -1;
                };
        return in >= 0 && hasTransport(in + 2) ? transport() + in : -1;
    }
}
