# Groups and broadcasts with macvlan: a DHCP server on the LAN, a DHCP client on a macvlan, a container on another
# macvlan of the same parent; groups that the host joined or did not join, its own that come back, mDNS, MLD.
# needs: dnsmasq udhcpc nginx curl ping python3 socat ethtool
# one: lan0
# inbound: the host's own leases and groups are half of it.
# unseen: ip mangle INPUT 1: what the host sends to a group that it is in itself comes back without a device.
# unseen: ip mangle INPUT 2: what the host sends to a broadcast address comes back without a device.
# unseen: ip6 mangle INPUT 1: what the host sends to a group that it is in itself comes back without a device.

setup() {
    local one
    ns c k r s
    wire c eth0 r lan0
    wire s eth0 r wan0
    addr r lan0 192.168.1.1/24
    addr s eth0 203.0.113.1/24
    addr r lan0 2001:db8:1::1/64
    addr c eth0 2001:db8:1::10/64
    ip -n r link add up0 link wan0 address 02:00:00:00:00:a1 type macvlan mode bridge
    ip -n r link add link wan0 name kid0 address 02:00:00:00:00:a2 type macvlan mode bridge
    ip -n r link set kid0 netns k name eth0
    ip -n r link set up0 up
    ip -n k link set eth0 up
    addr k eth0 203.0.113.99/24
    ip -n k route add default via 203.0.113.1
    forwarding r
    # A client that reads DHCP from a packet socket checks sums that offload leaves unfinished.
    for one in s:eth0 r:lan0 r:wan0 r:up0 c:eth0; do at ${one%:*} ethtool -K ${one#*:} tx off >/dev/null 2>&1; done
    web s 80
    web k 80
    echoing s 1001
    dhcp s eth0 203.0.113
    dhcp r lan0 192.168.1
    cat >$lab/lease <<'L'
#!/bin/sh
case $1 in
bound)
    ip addr replace $ip/24 dev $interface
    ip route replace default via $router
esac
L
    chmod +x $lab/lease
    listens s 80
    listens s 67 udp
    listens r 67 udp
    lease r up0 >$lab/lease.log
    lease c eth0 >>$lab/lease.log
    group r 192.168.1.1 239.1.1.1 5001 &
    group r 203.0.113.50 239.2.2.2 5001 &
    group c 192.168.1.50 239.3.3.3 5001 &
    sleep 1
}

dhcp() {
    at "$1" dnsmasq --no-daemon --conf-file=/dev/null --user=root --port=0 --no-ping --pid-file= \
        --dhcp-leasefile="$lab/$1.leases" --interface="$2" --bind-dynamic --dhcp-range="$3.50,$3.50,1h" >"$lab/$1.log" 2>&1 &
}

lease() { at "$1" udhcpc -q -n -f -t 3 -T 1 -i "$2" -s $lab/lease 2>&1; }

# Joins a group at the interface with that address, and listens.
group() { at "$1" socat -u "UDP-RECV:$4,reuseaddr,ip-add-membership=$3:$2" - >>$lab/group.log 2>&1; }

# Says something to a group or broadcast address: tell NS FROM TO PORT.
tell() { echo noise | at "$1" socat -T 0.1 - "UDP-DATAGRAM:$3:$4,bind=$2,broadcast,ip-multicast-ttl=4,ip-multicast-if=$2"; }

rules() {
    legacy_rules <<'R'
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A INPUT -s 192.168.1.1/32 -d 224.0.0.0/4
-A INPUT -s 192.168.1.1/32 -m addrtype --dst-type BROADCAST
-A PREROUTING -m pkttype --pkt-type multicast
-A PREROUTING -m pkttype --pkt-type broadcast
-A PREROUTING -i up0
-A OUTPUT -d 224.0.0.0/4
-A POSTROUTING -o up0
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A POSTROUTING -o up0 -j MASQUERADE
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -i lan0 -p udp -m udp --sport 68 --dport 67 -j ACCEPT
-A INPUT -i up0 -p udp -m udp --sport 67 --dport 68 -j ACCEPT
-A INPUT -d 239.1.1.1/32 -i lan0 -j ACCEPT
-A INPUT -d 239.2.2.2/32 -i up0 -j ACCEPT
-A INPUT -d 224.0.0.0/4 -j DROP
-A INPUT -m addrtype --dst-type BROADCAST -j DROP
-A INPUT -p icmp -j ACCEPT
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -i lan0 -o up0 -j ACCEPT
-A OUTPUT -p udp -m udp --sport 68 --dport 67
-A OUTPUT -p igmp
-A OUTPUT -m addrtype --dst-type BROADCAST
COMMIT
R
    legacy_rules6 <<'R'
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A INPUT -s fe80::/10 -d ff00::/8 -m conntrack --ctstate NEW
-A PREROUTING -d ff02::fb/128
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -d ff00::/8 -p ipv6-icmp
-A INPUT -d ff00::/8 -p udp -j DROP
COMMIT
R
}

traffic() {
    lease r up0
    lease c eth0
    tell c 192.168.1.50 239.1.1.1 5001
    tell c 192.168.1.50 239.2.2.2 5001
    tell c 192.168.1.50 224.0.0.251 5353
    tell c 192.168.1.50 224.0.0.1 9
    tell c 192.168.1.50 192.168.1.255 137
    tell c 192.168.1.50 255.255.255.255 9
    tell s 203.0.113.1 239.2.2.2 5001
    tell s 203.0.113.1 239.1.1.1 5001
    tell s 203.0.113.1 203.0.113.255 138
    tell k 203.0.113.99 239.2.2.2 5001
    tell k 203.0.113.99 203.0.113.255 138
    tell r 192.168.1.1 239.1.1.1 5001
    tell r 192.168.1.1 239.3.3.3 5001
    tell r 192.168.1.1 192.168.1.255 9
    tell r 203.0.113.50 239.9.9.9 9
    echo noise | at c socat -T 0.1 - "UDP6-DATAGRAM:[ff02::fb%eth0]:5353"
    at c ping -q -c 1 -W 1 -b 192.168.1.255
    at c ping -q -c 1 -W 1 224.0.0.1
    at c ping -q -c 1 -W 1 ff02::1%eth0
    get c http://203.0.113.1/small
    get r http://203.0.113.1/small
    get r http://203.0.113.99/small
    get k http://203.0.113.1/small
    echoes s 203.0.113.50 2
    echoes k 203.0.113.50 2
    flow c tcp 203.0.113.1 1001 2
    flow r udp 203.0.113.1 1001 2
    flowing
}

again() {
    go
    group r 192.168.1.1 239.4.4.4 5002 & sleep 0.3
    tell c 192.168.1.50 239.4.4.4 5002
    tell s 203.0.113.1 239.2.2.2 5001
    tell s 203.0.113.1 255.255.255.255 9
    lease r up0
    get c http://203.0.113.1/big
    get k http://203.0.113.50:81/
    get c http://203.0.113.99/small
    echoes r 203.0.113.99 2
    echoes c 2001:db8:1::1 2
    tell r 192.168.1.1 224.0.0.251 5353
    sleep 0.3
}
