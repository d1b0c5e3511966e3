# ARP under arptables, at a host with two interfaces that also forwards: asked and asking, gratuitous, unanswered.
# needs: perl arptables-legacy arping ping scapy
# unseen: ip filter OUTPUT 1: nobody has that address, so the packet waits for a neighbour that never comes.
uses_arp=1

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
}

rules() {
    legacy_rules <<'R'
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A FORWARD -p icmp -j ACCEPT
-A OUTPUT -d 192.0.2.98/32
COMMIT
R
    at r arptables-legacy -P INPUT ACCEPT
    at r arptables-legacy -A INPUT -i lan0 --opcode 1 -d 10.1.0.1 -j ACCEPT
    at r arptables-legacy -A INPUT -i wan0 --opcode 1 -j ACCEPT
    at r arptables-legacy -A INPUT --opcode 2 -j ACCEPT
    at r arptables-legacy -A INPUT -s 10.1.0.66 -j DROP
    at r arptables-legacy -A OUTPUT -o lan0 --opcode 2 -j ACCEPT
    at r arptables-legacy -A OUTPUT -o wan0 --opcode 1 -j ACCEPT
    at r arptables-legacy -A OUTPUT -d 192.0.2.99 -j DROP
}

traffic() {
    echoes c 192.0.2.80 2
    echoes r 10.1.0.10 2
    echoes c 10.1.0.1 2
    at c arping -q -c 2 -w 1 -I eth0 10.1.0.1
    at c arping -q -c 2 -w 1 -I eth0 10.1.0.99
    at c arping -q -U -c 1 -I eth0 10.1.0.10
    echoes r 192.0.2.98 1
    echoes c 192.0.2.97 1
    at s $python - 2>/dev/null <<'P'
import logging
logging.getLogger("scapy").setLevel(logging.CRITICAL)
from scapy.all import *
for op, src, dst in [(1, "192.0.2.66", "192.0.2.1"), (2, "192.0.2.66", "192.0.2.1"), (1, "0.0.0.0", "192.0.2.1"),
                     (1, "10.1.0.66", "10.1.0.1"), (3, "192.0.2.80", "192.0.2.1"), (1, "192.0.2.80", "10.1.0.1")]:
    sendp(Ether(dst="ff:ff:ff:ff:ff:ff") / ARP(op=op, psrc=src, pdst=dst), iface="eth0", verbose=0)
P
    sleep 1
}
