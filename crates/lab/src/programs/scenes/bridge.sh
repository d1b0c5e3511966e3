# A bridge of three ports in front of the rules (bridge-nf-call on): flooding, broadcast, multicast, unknown and
# known destinations, an address of its own, routing to the outside, rules by physdev.
# needs: nginx curl ping socat dnsmasq dig nmap
# inbound: some connections are the host's own.
# unseen: ip mangle INPUT 1: what the host sends to a group that it is in itself comes back without a device.

setup() {
    ns a b c r s
    ip -n r link add br0 type bridge mcast_snooping 0
    ip -n r link set br0 up
    local one last=10
    for one in a b c; do
        wire $one eth0 r p$one
        ip -n r link set p$one master br0
        addr $one eth0 10.1.0.$last/24
        ip -n $one route add default via 10.1.0.1
        ip -n $one route add 224.0.0.0/4 dev eth0
        at $one sysctl -qw net.ipv4.icmp_echo_ignore_broadcasts=0
        last=$((last + 1))
    done
    wire s eth0 r wan0
    addr r br0 10.1.0.1/24
    addr r wan0 192.0.2.1/24
    addr s eth0 192.0.2.80/24
    forwarding r
    web a 80
    web s 80
    names b
    listens a 80
    listens s 80
    listens b 53 udp
}

rules() {
    legacy_rules <<'R'
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -m physdev --physdev-is-bridged
-A INPUT ! -i lo -m addrtype --src-type LOCAL
-A PREROUTING -m physdev --physdev-in pa
-A PREROUTING -m pkttype --pkt-type broadcast
-A PREROUTING -m pkttype --pkt-type multicast
-A FORWARD -m physdev --physdev-is-bridged
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A POSTROUTING -s 10.1.0.0/24 -o wan0 -j MASQUERADE
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -i br0 -p icmp -j ACCEPT
-A INPUT -i br0 -p udp -m udp --dport 137 -j ACCEPT
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -i br0 -o br0 -d 10.1.0.255/32 -j ACCEPT
-A FORWARD -i br0 -o br0 -d 224.0.0.0/4 -j ACCEPT
-A FORWARD -m physdev --physdev-in pb --physdev-out pa --physdev-is-bridged -p tcp -m tcp --dport 80 -j ACCEPT
-A FORWARD -m physdev --physdev-out pc --physdev-is-bridged -p icmp -j ACCEPT
-A FORWARD -i br0 -o br0 -p udp -m udp --dport 53 -j ACCEPT
-A FORWARD -i br0 -o wan0 -j ACCEPT
-A FORWARD -i br0 -o br0 -p tcp -j REJECT --reject-with tcp-reset
COMMIT
R
}

traffic() {
    get b http://10.1.0.10/small
    get b http://10.1.0.10/big
    get c http://10.1.0.10/small
    get a http://192.0.2.80/small
    get b http://192.0.2.80/big
    look_up a 10.1.0.11
    echoes a 10.1.0.12 2
    echoes a 10.1.0.11 2
    echoes a 10.1.0.1 2
    echoes a 192.0.2.80 2
    echoes a 10.1.0.255 2 -b
    echoes r 10.1.0.10 2
    echoes r 10.1.0.255 2 -b
    echo noise | at a socat -T 0.1 - UDP-DATAGRAM:10.1.0.255:137,broadcast,sp=137
    echo noise | at b socat -T 0.1 - UDP-DATAGRAM:224.0.0.251:5353
    # A destination that no port has spoken for: the frame floods.
    ip -n a neigh replace 10.1.0.77 lladdr 02:00:00:00:00:77 dev eth0 nud permanent
    echo flood | at a socat -T 0.1 - UDP-DATAGRAM:10.1.0.77:53
    at c nmap -n -Pn -sS --max-retries 0 -p 75-85 10.1.0.10
    get s http://10.1.0.10/
}
