# Forged sources and scans from the outside: LAN, own, loopback, broadcast and multicast sources, odd flags, options.
# needs: nginx curl nmap hping3 ping scapy
# unseen: ip raw OUTPUT 1: nobody has that address, so its answer waits for a neighbour that never comes.
# unseen: ip raw OUTPUT 2: nor that one.
# unseen: ip mangle INPUT 1: what the host sends to a broadcast address comes back without a device.

setup() {
    ns c r s
    wire c eth0 r lan0
    wire s eth0 r wan0
    addr c eth0 10.1.0.10/24
    addr r lan0 10.1.0.1/24
    addr r wan0 192.0.2.1/24
    addr s eth0 192.0.2.80/24
    ip -n c route add default via 10.1.0.1
    ip -n s route add default via 192.0.2.1
    ip -n r route add blackhole 198.18.0.0/15
    ip -n r route add prohibit 198.51.100.0/24
    ip -n r route add unreachable 203.0.113.0/24
    forwarding r
    at r sysctl -qw net.ipv4.conf.all.rp_filter=${rp_filter:-0} net.ipv4.conf.lan0.rp_filter=${rp_filter:-0} \
        net.ipv4.conf.wan0.rp_filter=${rp_filter:-0}
    web c 80
    web s 80
    listens c 80
    listens s 80
}

rules() {
    legacy_rules <<'R'
*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A PREROUTING -i wan0 -s 10.1.0.0/24
-A PREROUTING -i wan0 -s 127.0.0.0/8
-A PREROUTING -i wan0 -s 192.0.2.1/32
-A OUTPUT -d 10.1.0.77/32
-A OUTPUT -d 192.0.2.0/32
COMMIT
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A INPUT ! -i lo -m addrtype --src-type LOCAL
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -i lo -j ACCEPT
-A INPUT -m conntrack --ctstate INVALID -j DROP
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -i lan0 -j ACCEPT
-A INPUT -p icmp -j ACCEPT
-A INPUT -p tcp -m tcp --tcp-flags FIN,SYN,RST,PSH,ACK,URG NONE -j DROP
-A INPUT -p tcp -m tcp --tcp-flags FIN,SYN,RST,PSH,ACK,URG FIN,PSH,URG -j DROP
-A INPUT -p tcp -j REJECT --reject-with tcp-reset
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -s 10.1.0.0/24 -i lan0 -j ACCEPT
-A FORWARD -s 10.1.0.0/24 -j ACCEPT
-A FORWARD -p tcp -m tcp --dport 80 -j ACCEPT
-A FORWARD -p tcp -j REJECT --reject-with tcp-reset
-A OUTPUT -m conntrack --ctstate INVALID -j DROP
COMMIT
R
}

forged() {
    at s $python - 2>/dev/null <<'P'
import logging
logging.getLogger("scapy").setLevel(logging.CRITICAL)
from scapy.all import *
mac = open("/sys/class/net/eth0/address").read().strip()
router = getmacbyip("192.0.2.1")
frames = []
def send(ip, dst=router):
    frames.append(Ether(src=mac, dst=dst) / ip)
for src in ["10.1.0.10", "10.1.0.77", "192.0.2.1", "10.1.0.1", "127.0.0.1", "127.9.9.9", "0.0.0.0", "224.0.0.9",
            "255.255.255.255", "192.0.2.255", "192.0.2.0", "10.1.0.255", "240.0.0.1", "8.8.8.8", "169.254.3.4",
            "198.18.0.9", "198.51.100.9", "203.0.113.9"]:
    for dst in ["192.0.2.1", "10.1.0.10", "10.1.0.1", "192.0.2.255", "255.255.255.255", "224.0.0.1", "224.0.0.251"]:
        send(IP(src=src, dst=dst) / TCP(sport=1234, dport=80, flags="S"))
for dst in ["127.0.0.1", "127.1.2.3", "0.0.0.0", "0.1.2.3", "10.1.0.255", "10.1.0.0", "240.1.1.1", "198.18.0.1",
            "198.51.100.1", "203.0.113.1", "9.9.9.9", "169.254.1.1", "192.0.2.0", "10.1.0.99"]:
    send(IP(src="192.0.2.80", dst=dst) / UDP(sport=1234, dport=9999) / b"forged")
    send(IP(src="192.0.2.80", dst=dst) / ICMP() / b"forged")
for ttl in [0, 1, 2]:
    send(IP(src="192.0.2.80", dst="10.1.0.10", ttl=ttl) / TCP(dport=80, flags="S"))
    send(IP(src="192.0.2.80", dst="192.0.2.1", ttl=ttl) / TCP(dport=81, flags="S"))
# A unicast packet in a broadcast or multicast frame, and one to another MAC address.
for dst in ["ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01", "02:00:00:00:00:99"]:
    send(IP(src="192.0.2.80", dst="10.1.0.10") / TCP(dport=80, flags="S"), dst)
    send(IP(src="192.0.2.80", dst="192.0.2.1") / UDP(dport=80) / b"x", dst)
# Options: loose source route, record route; a header with a wrong checksum; cut and odd lengths.
send(IP(src="192.0.2.80", dst="192.0.2.1", options=IPOption_LSRR(routers=["10.1.0.10"])) / UDP(dport=80) / b"lsrr")
send(IP(src="192.0.2.80", dst="10.1.0.10", options=IPOption_RR(routers=["0.0.0.0"] * 3)) / UDP(dport=80) / b"rr")
send(IP(src="192.0.2.80", dst="10.1.0.10", chksum=0x1234) / UDP(dport=80) / b"x")
send(IP(src="192.0.2.80", dst="10.1.0.10", len=19) / UDP(dport=80) / b"x")
send(IP(src="192.0.2.80", dst="10.1.0.10", proto=6) / b"\x00\x50")
for flags in ["", "F", "FPU", "SA", "A", "R", "SF", "SR", "FSRPAU"]:
    send(IP(src="192.0.2.80", dst="10.1.0.10") / TCP(sport=4000, dport=80, flags=flags))
    send(IP(src="192.0.2.80", dst="192.0.2.1") / TCP(sport=4000, dport=80, flags=flags))
s = conf.L2socket(iface="eth0")
for frame in frames:
    s.send(frame)
P
}

traffic() {
    get c http://192.0.2.80/small
    get s http://10.1.0.10/small
    forged
    at s nmap -n -Pn -sN --max-retries 0 --host-timeout 2s -p 79-81 192.0.2.1
    at s nmap -n -Pn -sX --max-retries 0 --host-timeout 2s -p 79-81 10.1.0.10
    at s nmap -n -Pn -sF --max-retries 0 --host-timeout 2s -p 79-81 10.1.0.10
    at s nmap -n -Pn -sO --max-retries 0 --host-timeout 2s -p 1,2,6,17,47,50,51,132 192.0.2.1
    at s nmap -n -Pn -sO --max-retries 0 --host-timeout 2s -p 1,2,6,17,47,50,51,132 10.1.0.10
    at s hping3 -q -c 20 -i u5000 -S -p 80 --rand-source 10.1.0.10
    at s hping3 -q -c 5 -i u5000 --udp -p 80 -a 10.1.0.10 192.0.2.1
    at s hping3 -q -c 5 -i u5000 --icmp -a 192.0.2.1 192.0.2.1
    echoes c 192.0.2.80 2
}
