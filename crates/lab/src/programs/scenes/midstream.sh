# A capture that begins while connections stand: TCP, UDP and ping flows from before, and their counters since.
# needs: python3 curl ping dnsmasq dig socat
early_rules=1

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
    names s
    at s socat TCP-LISTEN:1001,fork,reuseaddr EXEC:cat &
    at s socat UDP-LISTEN:1002,fork,reuseaddr EXEC:cat &
    at r socat TCP-LISTEN:1003,fork,reuseaddr EXEC:cat &
    listens s 80
    listens s 53 udp
    listens s 1001
    listens s 1002 udp
    listens r 1003
}

rules() {
    legacy_rules <<'R'
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A POSTROUTING -o wan0 -j MASQUERADE
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -m conntrack --ctstate INVALID -j DROP
-A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT
-A INPUT -i lan0 -m conntrack --ctstate NEW -j ACCEPT
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -m conntrack --ctstate RELATED -j ACCEPT
-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT
-A FORWARD -i lan0 -m conntrack --ctstate NEW -j ACCEPT
-A OUTPUT -m conntrack --ctstate NEW
-A OUTPUT -m conntrack --ctstate ESTABLISHED
COMMIT
R
}

before() {
    flow c tcp 192.0.2.80 1001 3
    flow c tcp 192.0.2.80 1001 0
    flow c udp 192.0.2.80 1002 3
    flow c udp 192.0.2.80 1002 1
    flow c tcp 10.1.0.1 1003 2
    look_up c 192.0.2.80
    echoes c 192.0.2.80 2 -e 77
    get c http://192.0.2.80/small
    flowing
    sleep 0.2
}

traffic() {
    go
    get c http://192.0.2.80/small
    echoes c 192.0.2.80 2 -e 77
    echoes c 192.0.2.80 2 -e 78
    look_up c 192.0.2.80
    sleep 0.5
    get c http://192.0.2.80/big
}
