# Fragments through a router that tracks connections: whole, out of order, overlapping, incomplete; both families.
# needs: ping scapy socat
settle=1.5
quiet=1.2

setup() {
    ns c r s
    wire c eth0 r lan0
    wire s eth0 r wan0
    addr c eth0 10.1.0.10/24 2001:db8:1::10/64
    addr r lan0 10.1.0.1/24 2001:db8:1::1/64
    addr r wan0 192.0.2.1/24 2001:db8:2::1/64
    addr s eth0 192.0.2.80/24 2001:db8:2::80/64
    ip -n c route add default via 10.1.0.1
    ip -n c route add default via 2001:db8:1::1
    ip -n s route add default via 192.0.2.1
    ip -n s route add default via 2001:db8:2::1
    forwarding r
    at s socat UDP-LISTEN:1002,fork,reuseaddr EXEC:cat &
    listens s 1002 udp
}

tracked() {
    [ -n "${untracked:-}" ] || cat <<'R'
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT
R
}

pieces() {
    cat <<R
*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
$(tracked)
-A FORWARD -p udp -m udp --dport 1002 -j ACCEPT
-A FORWARD -p udp -m udp --dport 9 -j REJECT --reject-with $1
-A FORWARD -p $2 -j ACCEPT
-A FORWARD $3
COMMIT
R
}

rules() {
    pieces icmp-port-unreachable icmp -f | legacy_rules
    pieces icmp6-port-unreachable ipv6-icmp "-m frag --fragmore" | legacy_rules6
}

torn() {
    at c $python - 2>/dev/null <<'P'
import logging
logging.getLogger("scapy").setLevel(logging.CRITICAL)
from scapy.all import *
mac = open("/sys/class/net/eth0/address").read().strip()
router = getmacbyip("10.1.0.1")
s = conf.L2socket(iface="eth0")
def put(*packets):
    for p in packets:
        s.send(Ether(src=mac, dst=router) / p)
        time.sleep(0.002)
def pieces(id, port=1002, size=700, count=2000, **ip):
    whole = IP(src="10.1.0.10", dst="192.0.2.80", id=id, **ip) / UDP(sport=4000 + id, dport=port) / (b"p" * count)
    return fragment(whole, fragsize=size)
put(*pieces(1))
put(*reversed(pieces(2)))
three = pieces(3); put(three[1], three[0], three[2])
put(*pieces(4)[:2])
put(*pieces(5)[1:])
six = pieces(6); put(six[0], six[0], *six[1:])
seven = pieces(7); put(seven[0], IP(src="10.1.0.10", dst="192.0.2.80", id=7, flags="MF", frag=40, proto=17) / (b"o" * 400), *seven[1:])
put(*pieces(8, port=9))
put(*pieces(9, size=24, count=60))
put(*pieces(10, size=8, count=30))
put(IP(src="10.1.0.10", dst="192.0.2.80", id=11, frag=1, proto=6) / (b"t" * 20))
put(IP(src="10.1.0.10", dst="192.0.2.80", id=12, flags="MF", proto=17) / UDP(sport=1, dport=1002))
put(*pieces(13, ttl=1))
def six_of(id, port=1002, size=800):
    whole = IPv6(src="2001:db8:1::10", dst="2001:db8:2::80") / IPv6ExtHdrFragment(id=id) / UDP(sport=5000 + id, dport=port) / (b"p" * 2000)
    return fragment6(whole, size)
put(*six_of(1))
put(*reversed(six_of(2)))
put(*six_of(3, port=9))
put(*six_of(4)[:1])
put(IPv6(src="2001:db8:1::10", dst="2001:db8:2::80") / IPv6ExtHdrFragment(id=5) / UDP(sport=5, dport=1002) / b"atomic")
P
}

traffic() {
    echoes c 192.0.2.80 2 -s 4000
    echoes c 192.0.2.80 1 -s 20000
    echoes c 2001:db8:2::80 2 -s 4000
    echoes c 10.1.0.1 2 -s 4000
    echoes c 2001:db8:1::1 2 -s 4000
    echoes r 192.0.2.80 2 -s 4000
    echoes r 2001:db8:2::80 2 -s 4000
    torn
}
