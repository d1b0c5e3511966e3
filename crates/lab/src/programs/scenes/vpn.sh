# OpenVPN on the firewall: a road warrior who goes to the LAN, to the firewall and on to the Internet by the interface
# that its datagrams came in by; TCPMSS, MASQUERADE, large pings, the LAN to the road warrior.
# needs: openvpn nginx curl dnsmasq dig ping python3 socat
# one: tun0
# cut: tun0 takes no superframes, so each segment shows there, of what FORWARD and POSTROUTING count once.
# inbound: what the road warrior sends shows inside its own datagrams.

setup() {
    ns c r s w
    host c lan0 10.1.0.10/24 10.1.0.1
    host s wan0 192.0.2.80/24 192.0.2.1 203.0.113.80/32
    wire w eth0 s eth1
    addr s eth1 198.51.100.1/24
    addr w eth0 198.51.100.7/24
    ip -n w route add default via 198.51.100.1
    ip -n r route add default via 192.0.2.80
    forwarding r
    forwarding s
    web c 80
    web s 80
    web r 88
    names r
    echoing c 1001
    echoing s 1001
    openvpn --genkey secret $lab/key 2>>$lab/vpn.err
    tunnel r 10.8.0.1 10.8.0.2
    tunnel w 10.8.0.2 10.8.0.1 --remote 192.0.2.1 --nobind --redirect-gateway def1
    web w 80
    listens c 80
    listens s 80
    listens r 88
    listens w 80
    local turn
    for turn in $(seq 40); do at w ping -q -c 1 -W 1 10.8.0.1 >/dev/null 2>&1 && break; sleep 0.2; done
}

tunnel() {
    at "$1" openvpn --dev tun0 --dev-type tun --proto udp --port 1194 --ifconfig "$2" "$3" --secret $lab/key \
        --cipher AES-256-CBC --verb 1 "${@:4}" >"$lab/vpn-$1.log" 2>&1 &
}

rules() {
    legacy_rules <<'R'
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A FORWARD -o tun0 -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss 1300
-A FORWARD -i tun0 -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu
-A OUTPUT -o tun0
-A POSTROUTING -o tun0
-A POSTROUTING -o wan0 -p udp -m udp --sport 1194
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -i wan0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.8.0.2:80
-A PREROUTING -i tun0 -p tcp -m tcp --dport 8888 -j REDIRECT --to-ports 88
-A POSTROUTING -s 10.8.0.0/24 -o wan0 -j MASQUERADE
-A POSTROUTING -s 10.1.0.0/24 -o wan0 -j MASQUERADE
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -i lo -j ACCEPT
-A INPUT -m conntrack --ctstate INVALID -j DROP
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -i wan0 -p udp -m udp --dport 1194 -m conntrack --ctstate NEW -j ACCEPT
-A INPUT -i tun0 -p tcp -m tcp --dport 88 -j ACCEPT
-A INPUT -i tun0 -p udp -m udp --dport 53 -j ACCEPT
-A INPUT -p icmp -j ACCEPT
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -i tun0 -o lan0 -j ACCEPT
-A FORWARD -i tun0 -o wan0 -j ACCEPT
-A FORWARD -i lan0 -o tun0 -j ACCEPT
-A FORWARD -i wan0 -o tun0 -m conntrack --ctstate DNAT -j ACCEPT
-A FORWARD -i lan0 -o wan0 -j ACCEPT
-A OUTPUT -p icmp -m icmp --icmp-type 3
-A OUTPUT -o tun0 -m conntrack --ctstate NEW
COMMIT
R
}

traffic() {
    get w http://10.1.0.10/small
    get w http://10.1.0.10/big
    get w http://203.0.113.80/big
    get w http://10.8.0.1:88/small
    get w http://203.0.113.80:8888/small
    get c http://10.8.0.2/small
    get c http://203.0.113.80/small
    get s http://192.0.2.1:8080/small
    get r http://10.8.0.2/big
    look_up w 10.8.0.1
    echoes w 10.1.0.10 2
    echoes w 10.1.0.10 2 -s 3000
    echoes w 10.8.0.1 2
    echoes c 10.8.0.2 2 -M do -s 1472
    echoes r 10.8.0.2 2
    flow w tcp 10.1.0.10 1001 2
    flow w udp 203.0.113.80 1001 2
    flow c udp 203.0.113.80 1001 1
    flowing
}

again() {
    go
    get w http://203.0.113.80/small
    get w http://203.0.113.80:81/
    get w -T $lab/www/big -X POST http://10.1.0.10/big
    get s http://192.0.2.1:8080/big
    get c http://10.8.0.2:81/
    knock w 10.8.0.1 89
    echoes w 203.0.113.80 2
    echoes w 203.0.113.80 2 -s 2000
    sleep 0.3
}
