# An IPv6 router with its advertisements: radvd, a host that configures itself, neighbour discovery, multicast,
# fragments, errors, rules for all of that.
# needs: nginx curl dnsmasq dig ping traceroute radvd nmap socat
# unseen: ip6 mangle INPUT 1: what the host sends to a group that it is in itself comes back without a device.
settle=1.5
quiet=0.8

setup() {
    ns c r s
    wire c eth0 r lan0
    wire s eth0 r wan0
    addr r lan0 2001:db8:1::1/64
    addr r wan0 2001:db8:2::1/64
    addr s eth0 2001:db8:2::80/64
    ip -n s route add default via 2001:db8:2::1
    at c sysctl -qw net.ipv6.conf.eth0.accept_ra=2 net.ipv6.conf.eth0.router_solicitations=3
    forwarding r
    web s 80
    names s
    listens s 80
    listens s 53 udp
    cat >$lab/radvd.conf <<'R'
interface lan0 { AdvSendAdvert on; MinRtrAdvInterval 3; MaxRtrAdvInterval 4; prefix 2001:db8:1::/64 { }; };
R
}

rules() {
    legacy_rules6 <<'R'
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -d ff00::/8
-A INPUT ! -i lo -m addrtype --src-type LOCAL
-A PREROUTING -s fe80::/10
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -i lo -j ACCEPT
-A INPUT -m conntrack --ctstate INVALID -j DROP
-A INPUT -p ipv6-icmp -m icmp6 --icmpv6-type 135 -m hl --hl-eq 255 -j ACCEPT
-A INPUT -p ipv6-icmp -m icmp6 --icmpv6-type 136 -m hl --hl-eq 255 -j ACCEPT
-A INPUT -p ipv6-icmp -m icmp6 --icmpv6-type 133 -m hl --hl-eq 255 -j ACCEPT
-A INPUT -p ipv6-icmp -m icmp6 --icmpv6-type 143 -j ACCEPT
-A INPUT -d ff02::1/128 -p ipv6-icmp -m icmp6 --icmpv6-type 128 -j ACCEPT
-A INPUT -p ipv6-icmp -m icmp6 --icmpv6-type 128 -j ACCEPT
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -d ff00::/8 -j DROP
-A INPUT -j REJECT --reject-with icmp6-adm-prohibited
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -i lan0 -o wan0 -p tcp -m tcp --dport 80 -j ACCEPT
-A FORWARD -i lan0 -o wan0 -p udp -j ACCEPT
-A FORWARD -i lan0 -o wan0 -p ipv6-icmp -m icmp6 --icmpv6-type 128 -j ACCEPT
-A FORWARD -p tcp -j REJECT --reject-with tcp-reset
-A FORWARD -j REJECT --reject-with icmp6-adm-prohibited
-A OUTPUT -m conntrack --ctstate INVALID -j DROP
-A OUTPUT -p ipv6-icmp -m icmp6 --icmpv6-type 134
-A OUTPUT -p ipv6-icmp -m icmp6 --icmpv6-type 135
-A OUTPUT -p ipv6-icmp -m icmp6 --icmpv6-type 136
-A OUTPUT -p ipv6-icmp -m conntrack --ctstate RELATED
-A OUTPUT -p tcp -m conntrack --ctstate RELATED
COMMIT
R
}

traffic() {
    at r radvd -n -C $lab/radvd.conf -p $lab/radvd.pid -m stderr_syslog 2>$lab/radvd.log &
    local turn
    for turn in $(seq 60); do
        [ -n "$(ip -n c -6 route show default)" ] && break
        sleep 0.1
    done
    get c 'http://[2001:db8:2::80]/small'
    get c 'http://[2001:db8:2::80]/big'
    get c 'http://[2001:db8:2::80]:81/'
    look_up c 2001:db8:2::80 AAAA
    echoes c 2001:db8:2::80 3
    echoes c 2001:db8:2::80 2 -s 4000
    echoes c 2001:db8:1::1 2
    echoes c ff02::1%eth0 2
    echoes c ff02::2%eth0 2
    echoes r ff02::1%lan0 2
    echoes r 2001:db8:2::80 2 -s 3000
    echoes c 2001:db8:9::1 2
    echoes c 2001:db8:2::99 1
    at c traceroute -6 -n -q 1 -w 0.3 -m 3 2001:db8:2::80
    echoes c 2001:db8:2::80 1 -t 1
    at c nmap -6 -n -Pn -sS --max-retries 0 -p 20-25 2001:db8:1::1
    at c nmap -6 -n -Pn -sU --max-retries 0 --host-timeout 2s -p 67 2001:db8:1::1
    get s "http://[$(ip -n c -6 -o addr show dev eth0 scope global | sed 's/.*inet6 \([^/]*\).*/\1/')]/"
    echo noise | at c socat -T 0.1 - UDP6-DATAGRAM:[ff02::fb%eth0]:5353
    get c "http://[$(ip -n r -6 -o addr show dev lan0 scope link | sed 's/.*inet6 \([^/]*\).*/\1/')%eth0]/"
}
