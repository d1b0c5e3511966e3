# DHCP both ways: a server on the LAN's interface, a client on the outer one; broadcasts, raw senders, mDNS noise.
# needs: dnsmasq udhcpc ethtool ping socat curl nginx
# inbound: the router's own leases are half of it.

setup() {
    ns c r s
    wire c eth0 r lan0
    wire s eth0 r wan0
    addr r lan0 192.168.1.1/24
    addr s eth0 203.0.113.1/24
    ip -n c link set lo up
    forwarding r
    at s sysctl -qw net.ipv4.ip_forward=1
    # A client that reads DHCP from a packet socket checks sums that offload leaves unfinished.
    for one in s:eth0 r:lan0 r:wan0 c:eth0; do at ${one%:*} ethtool -K ${one#*:} tx off >/dev/null; done
    web s 80
    at s dnsmasq --no-daemon --conf-file=/dev/null --user=root --port=0 --no-ping --pid-file= --dhcp-leasefile=$lab/s.leases \
        --dhcp-range=203.0.113.50,203.0.113.60,1h --dhcp-option=3,203.0.113.1 >$lab/s.log 2>&1 &
    at r dnsmasq --no-daemon --conf-file=/dev/null --user=root --port=0 --no-ping --pid-file= --dhcp-leasefile=$lab/r.leases \
        --interface=lan0 --bind-dynamic --dhcp-range=192.168.1.50,192.168.1.60,1h >$lab/r.log 2>&1 &
    cat >$lab/lease <<'L'
#!/bin/sh
case $1 in
bound)
    ip addr replace $ip/24 dev $interface
    ip route replace default via $router
esac
L
    chmod +x $lab/lease
    listens s 67 udp
    listens r 67 udp
    lease r wan0 >$lab/lease.log
}

lease() { at "$1" udhcpc -q -n -f -t 3 -T 1 -i "$2" -s $lab/lease 2>&1; }

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
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -i lan0 -p udp -m udp --sport 68 --dport 67 -j ACCEPT
-A INPUT -i wan0 -p udp -m udp --sport 67 --dport 68 -j ACCEPT
-A INPUT -i lan0 -d 224.0.0.0/4 -j ACCEPT
-A INPUT -i lan0 -m addrtype --dst-type BROADCAST
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -i lan0 -o wan0 -j ACCEPT
-A OUTPUT -p udp -m udp --sport 67 --dport 68
-A OUTPUT -p udp -m udp --sport 68 --dport 67
COMMIT
R
}

traffic() {
    lease r wan0
    lease c eth0
    get c http://203.0.113.1/small
    echoes c 203.0.113.1 2
    echo noise | at c socat -T 0.1 - UDP-DATAGRAM:192.168.1.255:137,broadcast,sp=137
    echo noise | at c socat -T 0.1 - UDP-DATAGRAM:255.255.255.255:9,broadcast
    echo noise | at c socat -T 0.1 - UDP-DATAGRAM:224.0.0.251:5353
    echo noise | at c socat -T 0.1 - UDP-DATAGRAM:224.0.0.1:9
    echo noise | at s socat -T 0.1 - UDP-DATAGRAM:203.0.113.255:138,broadcast,sp=138
}
