# A narrower output: packets with and without DF, path MTU discovery, superframes over it, IPv6 too big.
# needs: nginx curl ping hping3
# inbound: nothing tells the size of the segments of a superframe.
settle=1.5

setup() {
    ns c r s
    wire c eth0 r lan0
    wire s eth0 r wan0
    addr c eth0 10.1.0.10/24 2001:db8:1::10/64
    addr r lan0 10.1.0.1/24 2001:db8:1::1/64
    addr r wan0 192.0.2.1/24 2001:db8:2::1/64
    addr s eth0 192.0.2.80/24 2001:db8:2::80/64
    ip -n r link set wan0 mtu 1300
    ip -n s link set eth0 mtu 1300
    ip -n c route add default via 10.1.0.1
    ip -n c route add default via 2001:db8:1::1
    ip -n s route add default via 192.0.2.1
    ip -n s route add default via 2001:db8:2::1
    forwarding r
    web s 80
    web c 80
    listens s 80
    listens c 80
}

narrow() {
    cat <<'R'
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A FORWARD -m length --length 1301:65535
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -m conntrack --ctstate NEW -j ACCEPT
-A OUTPUT -m conntrack --ctstate INVALID -j DROP
-A OUTPUT -m conntrack --ctstate RELATED
COMMIT
R
}

rules() {
    narrow | legacy_rules
    narrow | legacy_rules6
}

traffic() {
    echoes c 192.0.2.80 2 -s 1400 -M do
    ip -n c route flush cache
    echoes c 192.0.2.80 2 -s 1400 -M dont
    echoes c 192.0.2.80 2 -s 3000 -M dont
    echoes c 192.0.2.80 2 -s 1200 -M do
    ip -n c route flush cache
    get c http://192.0.2.80/big
    get c -T $lab/www/big -X POST http://192.0.2.80/big
    get s http://10.1.0.10/big
    get c 'http://[2001:db8:2::80]/small'
    get c -T $lab/www/big -X POST 'http://[2001:db8:2::80]/big'
    get s 'http://[2001:db8:1::10]/big'
    echoes c 2001:db8:2::80 2 -s 1400
    ip -n c -6 route flush cache
    echoes c 2001:db8:2::80 1 -s 1400 -M do
    at c hping3 -q -c 2 -i u10000 --udp -p 9 -d 1400 -y 192.0.2.80
    at c hping3 -q -c 2 -i u10000 --udp -p 9 -d 1400 192.0.2.80
}
