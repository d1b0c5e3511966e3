# Two VXLAN tunnels with offloads: one routed and masqueraded, one the port of a bridge whose frames pass the IP rules,
# its outer packets untracked.
# needs: nginx curl iperf3 ping python3 socat
# one: wan0
# inbound: one download is the router's own.

setup() {
    local one name dev far
    ns c r s k
    host c lan0 10.1.0.10/24 10.1.0.1
    wire s eth0 r wan0
    wire k eth0 r tap0
    addr r wan0 192.0.2.1/24
    addr s eth0 192.0.2.80/24
    ip -n r route add default via 192.0.2.80
    forwarding r
    for one in r:wan0:192.0.2.80 s:eth0:192.0.2.1; do
        IFS=: read -r name dev far <<<"$one"
        ip -n "$name" link add vx0 type vxlan id 42 dev "$dev" remote "$far" dstport 4789
        ip -n "$name" link add vx1 type vxlan id 43 dev "$dev" remote "$far" dstport 4790 noudpcsum
        ip -n "$name" link set vx0 up
        ip -n "$name" link set vx1 up
    done
    ip -n r link add br9 type bridge
    ip -n r link set vx1 master br9
    ip -n r link set tap0 master br9
    ip -n r link set br9 up
    at r sysctl -qw net.bridge.bridge-nf-call-iptables=1
    ip -n k link set eth0 mtu 1450
    addr r vx0 10.9.0.1/24
    addr s vx0 10.9.0.2/24
    addr r br9 10.8.0.1/24
    addr s vx1 10.8.0.2/24
    addr k eth0 10.8.0.10/24
    ip -n k route add default via 10.8.0.1
    web s 80
    web k 80
    echoing s 1001
    at s iperf3 -s -D
    listens s 80
    listens k 80
    listens s 5201
}

rules() {
    legacy_rules <<'R'
*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A PREROUTING -p udp -m udp --dport 4790 -j CT --notrack
-A OUTPUT -p udp -m udp --dport 4790 -j CT --notrack
COMMIT
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -i vx0
-A PREROUTING -i br9
-A FORWARD -o vx0 -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu
-A FORWARD -m length --length 1451:65535
-A POSTROUTING -o wan0 -p udp -m udp --dport 4789
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -i vx0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.8.0.10:80
-A POSTROUTING -o vx0 -j MASQUERADE
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -i lo -j ACCEPT
-A INPUT -i wan0 -p udp -m udp --dport 4789 -m conntrack --ctstate NEW -j ACCEPT
-A INPUT -i wan0 -p udp -m udp --dport 4789 -m conntrack --ctstate ESTABLISHED -j ACCEPT
-A INPUT -i wan0 -p udp -m udp --dport 4790 -m conntrack --ctstate UNTRACKED -j ACCEPT
-A INPUT -m conntrack --ctstate INVALID -j DROP
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -p icmp -j ACCEPT
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -m physdev --physdev-in tap0 --physdev-out vx1 -j ACCEPT
-A FORWARD -m physdev --physdev-in vx1 --physdev-out tap0 -p tcp -j ACCEPT
-A FORWARD -i lan0 -o vx0 -j ACCEPT
-A FORWARD -i vx0 -m conntrack --ctstate DNAT -j ACCEPT
-A FORWARD -i lan0 -o br9 -p icmp -j ACCEPT
-A OUTPUT -p udp -m udp --dport 4789
-A OUTPUT -o vx0
COMMIT
R
}

traffic() {
    get c http://10.9.0.2/small
    get c http://10.9.0.2/big
    get c -T $lab/www/big -X POST http://10.9.0.2/big
    get r http://10.9.0.2/big
    get k http://10.8.0.2/big
    get s http://10.8.0.10/small
    get s http://10.9.0.1:8080/small
    at c iperf3 -c 10.9.0.2 -u -b 20M -n 200K -l 1200
    echoes c 10.9.0.2 2
    echoes c 10.9.0.2 2 -s 3000
    echoes c 10.9.0.2 2 -M do -s 1440
    echoes k 10.8.0.2 2
    echoes s 10.8.0.10 2
    flow c tcp 10.9.0.2 1001 2
    flow c udp 10.9.0.2 1001 2
    flow k tcp 10.8.0.2 1001 2
    flowing
}

again() {
    go
    get c http://10.9.0.2/small
    get c http://10.9.0.2/big
    at c iperf3 -c 10.9.0.2 -n 1M -R -P 2
    get k http://10.8.0.2/small
    get s http://10.9.0.1:8080/big
    echoes c 10.8.0.10 2
    echoes s 10.9.0.1 2
    get c http://10.9.0.2:81/
    sleep 0.3
}
