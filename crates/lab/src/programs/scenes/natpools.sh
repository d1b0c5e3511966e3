# Translation to ranges: of addresses with and without --persistent, of ports, drawn fully at random; NETMAP both ways,
# IPv6 NETMAP and MASQUERADE; errors about what was translated, own connections through the pool.
# needs: nginx curl dnsmasq dig ping traceroute python3 socat
# one: wan0
# inbound: ports and addresses of the pools are drawn.

setup() {
    ns c d r s
    host c lan0 10.1.0.10/24 10.1.0.1 10.1.0.11/24 10.1.0.12/24
    host d lan1 10.2.0.10/24 10.2.0.1 10.2.0.11/24
    host s wan0 203.0.113.80/24 203.0.113.1
    ip -n s route add 203.0.113.16/28 via 203.0.113.1
    ip -n r route add default via 203.0.113.80
    addr c eth0 fd00:1::10/64
    addr r lan0 fd00:1::1/64
    addr d eth0 fd00:2::10/64
    addr r lan1 fd00:2::1/64
    addr r wan0 2001:db8:9::1/64
    addr s eth0 2001:db8:9::80/64
    ip -n c route add default via fd00:1::1
    ip -n d route add default via fd00:2::1
    ip -n s route add default via 2001:db8:9::1
    forwarding r
    web s 80
    web c 80 8000 8001 8002 8003
    web d 80
    web r 3128 3129 3130
    names s
    echoing s 1001
    echoing c 1002
    listens s 80
    listens c 8003
    listens d 80
    listens r 3130
    listens s 53 udp
}

rules() {
    legacy_rules <<'R'
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -d 198.51.100.0/24 -i wan0 -j NETMAP --to 10.2.0.0/24
-A PREROUTING -d 203.0.113.1/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.1.0.10-10.1.0.12
-A PREROUTING -d 203.0.113.1/32 -p tcp -m tcp --dport 8000 -j DNAT --to-destination 10.1.0.10:8000-8003
-A PREROUTING -d 203.0.113.1/32 -p udp -m udp --dport 5000:5003 -j DNAT --to-destination 10.1.0.10:1002
-A PREROUTING -i lan0 -p tcp -m tcp --dport 8888 -j REDIRECT --to-ports 3128-3130
-A INPUT -i lan0 -p tcp -m tcp --dport 3128:3130 -j SNAT --to-source 10.1.0.99
-A OUTPUT -d 198.51.100.0/24 -j NETMAP --to 10.2.0.0/24
-A POSTROUTING -s 10.2.0.0/24 -o wan0 -j NETMAP --to 198.51.100.0/24
-A POSTROUTING -s 10.1.0.0/24 -o wan0 -p tcp -j SNAT --to-source 203.0.113.16-203.0.113.19:20000-20099
-A POSTROUTING -s 10.1.0.0/24 -o wan0 -p udp -j SNAT --to-source 203.0.113.20-203.0.113.23 --random-fully
-A POSTROUTING -s 10.1.0.0/24 -o wan0 -p icmp -j SNAT --to-source 203.0.113.24-203.0.113.27 --persistent
-A POSTROUTING -o wan0 -p tcp -j SNAT --to-source 203.0.113.28-203.0.113.30
COMMIT
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A FORWARD -d 10.1.0.11/32
-A FORWARD -d 10.2.0.11/32
-A FORWARD -m conntrack --ctstate SNAT --ctrepldst 203.0.113.16
-A INPUT -d 203.0.113.1/32 -i wan0 -p tcp
-A INPUT -s 10.1.0.99/32
-A OUTPUT -d 10.1.0.10/32 -p tcp
-A OUTPUT -s 203.0.113.1/32 -o wan0 -p tcp
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -m conntrack --ctstate INVALID -j DROP
-A INPUT -m conntrack --ctstate RELATED -j ACCEPT
-A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT
-A INPUT -i lan0 -j ACCEPT
-A INPUT -p icmp -j ACCEPT
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -m conntrack --ctstate RELATED -j ACCEPT
-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT
-A FORWARD -d 10.2.0.11/32 -p tcp -m conntrack --ctstate DNAT -j REJECT --reject-with icmp-host-prohibited
-A FORWARD -m conntrack --ctstate DNAT -j ACCEPT
-A FORWARD -i lan0 -o wan0 -j ACCEPT
-A FORWARD -i lan1 -o wan0 -j ACCEPT
-A OUTPUT -m conntrack --ctstate RELATED
-A OUTPUT -m conntrack --ctstate INVALID
COMMIT
R
    legacy_rules6 <<'R'
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -d 2001:db8:55::/64 -i wan0 -j NETMAP --to fd00:1::/64
-A POSTROUTING -s fd00:1::/64 -o wan0 -j NETMAP --to 2001:db8:55::/64
-A POSTROUTING -o wan0 -p tcp -j MASQUERADE --to-ports 30000-30099
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -i wan0 -m conntrack --ctstate DNAT -j ACCEPT
-A FORWARD -o wan0 -j ACCEPT
-A OUTPUT -p tcp
COMMIT
R
}

traffic() {
    local turn
    for turn in 1 2 3; do get c http://203.0.113.80/small; done
    get c --interface 10.1.0.11 http://203.0.113.80/big
    get d http://203.0.113.80/small
    get d --interface 10.2.0.11 http://203.0.113.80/small
    get r http://203.0.113.80/small
    get r http://198.51.100.10/small
    get s http://198.51.100.10/small
    get s http://198.51.100.11/small
    for turn in 1 2 3; do get s http://203.0.113.1/small; get s http://203.0.113.1:8000/small; done
    get c http://203.0.113.80:8888/small
    get c http://203.0.113.80:8888/big
    look_up c 203.0.113.80
    look_up d 203.0.113.80
    echoes c 203.0.113.80 2
    echoes c 203.0.113.80 2 -I 10.1.0.12
    echoes d 203.0.113.80 2
    echoes s 198.51.100.10 2
    echoes s 203.0.113.1 2
    echoes r 203.0.113.80 2
    get c "http://[2001:db8:9::80]/small"
    get d "http://[2001:db8:9::80]/big"
    get s "http://[2001:db8:55::10]/small"
    echoes c 2001:db8:9::80 2
    flow c tcp 203.0.113.80 1001 2
    flow c udp 203.0.113.80 1001 2
    flow s udp 203.0.113.1 5001 2
    flow d tcp 203.0.113.80 1001 2
    flowing
}

again() {
    go
    get c http://203.0.113.80/small
    get c http://203.0.113.80:81/
    get r http://203.0.113.80:81/
    at c traceroute -n -q 1 -w 0.3 -m 2 203.0.113.80
    at d traceroute -n -I -q 1 -w 0.3 -m 2 203.0.113.80
    echo closed | at c socat -T 0.2 - UDP:203.0.113.80:99
    echo closed | at s socat -T 0.2 - UDP:198.51.100.10:99
    get s http://203.0.113.1:8000/big
    get s http://203.0.113.1:82/
    get s "http://[2001:db8:55::10]:81/"
    look_up c 203.0.113.80
    echoes d 203.0.113.80 2
    sleep 0.3
}
