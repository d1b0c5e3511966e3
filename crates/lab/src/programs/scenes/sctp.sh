# SCTP of user space (usrsctp) through router and NAT, its chunks matched, beside crafted ones.
# needs: /usr/lib/usrsctp/discard_server /usr/lib/usrsctp/client scapy ping

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
    at s /usr/lib/usrsctp/discard_server >$lab/discard.log 2>&1 &
    sleep 0.3
}

rules() {
    legacy_rules <<'R'
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A FORWARD -p sctp -m sctp --chunk-types any INIT
-A FORWARD -p sctp -m sctp --chunk-types any DATA
-A FORWARD -p sctp -m sctp --chunk-types only SACK
-A FORWARD -p sctp -m sctp --chunk-types any ABORT
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -i lan0 -p sctp -m sctp --dport 9 -j ACCEPT
-A FORWARD -i lan0 -p sctp -m sctp --dport 7 -j ACCEPT
-A FORWARD -j REJECT --reject-with icmp-port-unreachable
COMMIT
R
}

traffic() {
    { sleep 0.3; echo hello; sleep 0.1; echo again; sleep 0.2; } |
        at c timeout 3 /usr/lib/usrsctp/client 192.0.2.80 9
    { sleep 0.3; echo hello; } | at c timeout 2 /usr/lib/usrsctp/client 192.0.2.80 7
    at c $python - 2>/dev/null <<'P'
import logging
logging.getLogger("scapy").setLevel(logging.CRITICAL)
from scapy.all import *
for chunks in [SCTPChunkInit(init_tag=7), SCTPChunkCookieEcho(), SCTPChunkData(data=b"x"), SCTPChunkAbort(), SCTPChunkShutdown()]:
    send(IP(dst="192.0.2.80") / SCTP(sport=1000, dport=9, tag=0) / chunks, verbose=0)
    send(IP(dst="192.0.2.80") / SCTP(sport=1000, dport=10, tag=0) / chunks, verbose=0)
P
    echoes c 192.0.2.80 1
}
