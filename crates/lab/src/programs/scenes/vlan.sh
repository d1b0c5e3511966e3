# A router on a stick: three VLANs on one trunk, one of them tagged by hand, and rules by VLAN interface.
# needs: python3 curl ping dnsmasq dig
# device: vlan

setup() {
    ns c d r
    ns sw
    wire r eth0 sw trunk
    wire c eth0 sw pc
    wire d eth0 sw pd
    ip -n sw link add br0 type bridge vlan_filtering 1
    ip -n sw link set br0 up
    local one
    for one in trunk pc pd; do ip -n sw link set $one master br0; done
    at sw sysctl -qw net.bridge.bridge-nf-call-iptables=0 net.bridge.bridge-nf-call-ip6tables=0
    for one in 10 20; do
        ip -n r link add link eth0 name eth0.$one type vlan id $one
        ip -n r link set eth0.$one up
        addr r eth0.$one 10.1.$one.1/24
        at sw bridge vlan add dev trunk vid $one
    done
    addr r eth0 10.1.1.1/24
    at sw bridge vlan add dev pc vid 10 pvid untagged
    at sw bridge vlan add dev pd vid 20 pvid untagged
    addr c eth0 10.1.10.10/24
    addr d eth0 10.1.20.20/24
    ip -n c route add default via 10.1.10.1
    ip -n d route add default via 10.1.20.1
    forwarding r
    web d 80
    web c 80
    names d
    listens d 80
    listens c 80
    listens d 53 udp
}

rules() {
    legacy_rules <<'R'
*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A PREROUTING -i eth0
-A PREROUTING -i eth0.10
-A PREROUTING -i eth0.20
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -i eth0.10 -p icmp -j ACCEPT
-A INPUT -p tcp -j REJECT --reject-with tcp-reset
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -i eth0.10 -o eth0.20 -j ACCEPT
-A FORWARD -i eth0.20 -o eth0.10 -j REJECT --reject-with icmp-admin-prohibited
-A OUTPUT -o eth0.10
-A OUTPUT -o eth0.20
COMMIT
R
}

traffic() {
    get c http://10.1.20.20/small
    get c http://10.1.20.20/big
    get d http://10.1.10.10/small
    look_up c 10.1.20.20
    echoes c 10.1.20.20 2
    echoes c 10.1.10.1 2
    echoes c 10.1.20.1 2
    echoes d 10.1.20.1 2
    echoes r 10.1.20.20 2
    knock c 10.1.10.1 22 23
}
