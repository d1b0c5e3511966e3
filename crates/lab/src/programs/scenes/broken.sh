# Connections that break: resets, refused and aborted ones, reused ports, segments out of the window, half-open ones,
# wrong checksums, errors that quote what never was.
# needs: nginx curl scapy ping

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
    forwarding r
    web s 80
    listens s 80
}

rules() {
    legacy_rules <<'R'
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -m conntrack --ctstate INVALID
-A PREROUTING -m conntrack --ctstate NEW
-A PREROUTING -m conntrack --ctstate RELATED
-A PREROUTING -m conntrack --ctstate ESTABLISHED
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -p tcp -m tcp --dport 83 -j REJECT --reject-with tcp-reset
-A FORWARD -m conntrack --ctstate INVALID
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -i lan0 -p tcp -m conntrack --ctstate NEW -j ACCEPT
-A FORWARD -p udp -j REJECT --reject-with icmp-port-unreachable
-A FORWARD -m conntrack --ctstate INVALID -j ACCEPT
-A OUTPUT -m conntrack --ctstate INVALID
-A OUTPUT -m conntrack --ctstate RELATED
COMMIT
R
}

# Connections that end badly, by plain sockets.
abrupt() {
    at s timeout 8 $python - <<'P' &
import socket, struct, threading, time
def serve(port, act):
    l = socket.socket(); l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    l.bind(("", port)); l.listen(20)
    while True:
        s, _ = l.accept(); act(s)
def reset(s):
    s.recv(10); s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)); s.close()
def leave(s):
    s.close()
def half(s):
    s.shutdown(socket.SHUT_WR); time.sleep(0.05); s.recv(100); s.close()
for port, act in [(1001, reset), (1002, leave), (1003, half)]:
    threading.Thread(target=serve, args=(port, act), daemon=True).start()
time.sleep(8)
P
    listens s 1003
    at c timeout 8 $python - <<'P'
import socket, struct, time
def to(port, port_here=None):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if port_here: s.bind(("", port_here))
    s.settimeout(0.5); s.connect(("192.0.2.80", port)); return s
for turn in range(3):
    for port in [1001, 1002, 1003]:
        s = to(port); s.send(b"hello")
        try: s.recv(10); s.send(b"more"); time.sleep(0.01); s.send(b"again")
        except OSError: pass
        s.close()
    s = to(80); s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)); s.close()
    try: to(81)
    except OSError: pass
for turn in range(4):
    # The same ports again after an abort.
    s = to(80, 40001); s.send(b"GET /small HTTP/1.0\r\n\r\n"); s.recv(4000)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)); s.close()
P
}

# Segments that fit no connection.
strange() {
    at c $python - 2>/dev/null <<'P'
import logging
logging.getLogger("scapy").setLevel(logging.CRITICAL)
from scapy.all import *
mac = open("/sys/class/net/eth0/address").read().strip()
router = getmacbyip("10.1.0.1")
s = conf.L2socket(iface="eth0")
def send(p, **ip):
    s.send(Ether(src=mac, dst=router) / IP(src="10.1.0.10", dst="192.0.2.80", **ip) / p)
    time.sleep(0.002)
def tcp(**k): return TCP(**{"sport": 50000, "dport": 80, **k})
for flags in ["A", "FA", "R", "RA", "PA", "S", "SA", "F", ""]:
    send(tcp(sport=50001, flags=flags, seq=1000, ack=5000))
# A connection that answers of nobody's: SYN, wrong acknowledgements, far out of the window, resets that do not fit.
send(tcp(flags="S", seq=1000))
send(tcp(flags="A", seq=1001, ack=77))
send(tcp(flags="PA", seq=900001001, ack=77) / b"far away")
send(tcp(flags="R", seq=5))
send(tcp(flags="S", seq=1000))
send(tcp(flags="S", seq=900000000))
send(tcp(flags="R", seq=1001))
send(tcp(flags="S", seq=7000))
# Wrong checksums, a header that is too short, a cut one.
send(tcp(sport=50002, flags="S", chksum=0x1111))
send(UDP(sport=50002, dport=53, chksum=0x1111) / b"wrong")
send(UDP(sport=50003, dport=53, chksum=0) / b"none")
send(ICMP(chksum=0x1111) / b"wrong")
send(tcp(sport=50004, flags="S", dataofs=3))
send(Raw(b"\xc3\x50\x00\x50\x00"), proto=6)
send(Raw(b"\xc3\x50\x00"), proto=17)
# Errors about what never was, and answers nobody asked for.
send(ICMP(type=3, code=3) / IP(src="192.0.2.80", dst="10.1.0.10") / UDP(sport=9, dport=9))
send(ICMP(type=11) / IP(src="192.0.2.80", dst="10.1.0.10") / TCP(sport=80, dport=9))
send(ICMP(type=0, id=9, seq=9))
send(ICMP(type=5, gw="10.1.0.9") / IP(src="192.0.2.80", dst="10.1.0.10") / UDP(sport=9, dport=9))
send(ICMP(type=13))
P
}

traffic() {
    get c http://192.0.2.80/small
    abrupt
    strange
    get c http://192.0.2.80:82/
    get c http://10.1.0.1:83/
    get c http://10.1.0.1:84/
    get c --max-time 0.01 --limit-rate 10k http://192.0.2.80/big
    echoes c 192.0.2.80 2
}
