# A server behind SYNPROXY: the router answers the client's SYN with a cookie, and opens the connection once it is paid.
# needs: python3 curl ping hping3
# inbound: the connections to the server are the router's.

setup() {
    ns c r s
    wire c eth0 r wan0
    wire s eth0 r dmz0
    addr c eth0 203.0.113.10/24
    addr r wan0 203.0.113.1/24
    addr r dmz0 192.0.2.1/24
    addr s eth0 192.0.2.80/24
    ip -n c route add default via 203.0.113.1
    ip -n s route add default via 192.0.2.1
    forwarding r
    at r sysctl -qw net.netfilter.nf_conntrack_tcp_loose=0 net.ipv4.tcp_syncookies=1
    web s 80 81
    listens s 80
}

rules() {
    legacy_rules <<'R'
*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A PREROUTING -i wan0 -p tcp -m tcp --dport 80 --tcp-flags FIN,SYN,RST,ACK SYN -j CT --notrack
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -p icmp -j ACCEPT
-A FORWARD -i wan0 -p tcp -m tcp --dport 80 -m conntrack --ctstate INVALID,UNTRACKED -j SYNPROXY --sack-perm --timestamp --wscale 7 --mss 1460
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
-A FORWARD -i wan0 -p tcp -m tcp --dport 81 -j ACCEPT
-A FORWARD -p icmp -j ACCEPT
-A OUTPUT -p tcp -m tcp --tcp-flags SYN,ACK SYN,ACK
-A OUTPUT -p tcp -m tcp --tcp-flags SYN,ACK SYN
COMMIT
R
}

traffic() {
    get c http://192.0.2.80/small http://192.0.2.80/small
    get c http://192.0.2.80/big
    get c http://192.0.2.80:81/small
    knock c 192.0.2.80 22
    echoes c 192.0.2.80 2
    at c hping3 -q -S -p 80 -c 5 -i u10000 192.0.2.80
    at c hping3 -q -A -p 80 -c 3 -i u10000 192.0.2.80
}
