# Two docker-like bridges whose frames pass the IP rules: published ports from outside, from the host, from the same
# container, the same bridge and the other one; service addresses, DNS redirected to the host, isolation.
# needs: nginx curl dnsmasq dig ping python3 socat
# one: eth0

setup() {
    local one
    ns a b d r s
    ip -n r link add docker0 type bridge
    ip -n r link add app0 type bridge
    ip -n r link set docker0 up
    ip -n r link set app0 up
    for one in a:docker0:172.17.0.2 b:docker0:172.17.0.3 d:app0:172.18.0.2; do
        IFS=: read -r name bridge address <<<"$one"
        wire "$name" eth0 r "veth$name"
        ip -n r link set "veth$name" master "$bridge"
        addr "$name" eth0 "$address/16"
        ip -n "$name" route add default via "${address%.*}.1"
    done
    ip -n r link set vetha type bridge_slave hairpin on
    addr r docker0 172.17.0.1/16
    addr r app0 172.18.0.1/16
    host s eth0 192.0.2.1/24 192.0.2.10 203.0.113.66/32
    ip -n r route add default via 192.0.2.1
    forwarding r
    at r sysctl -qw net.bridge.bridge-nf-call-iptables=1 net.ipv4.conf.docker0.route_localnet=1
    web a 80
    web b 80
    web d 80
    web s 80
    names r
    names s
    echoing a 1001
    at r socat TCP-LISTEN:8080,bind=127.0.0.1,fork,reuseaddr TCP:172.17.0.2:80 &
    listens a 80
    listens b 80
    listens d 80
    listens s 80
    listens r 53 udp
    listens r 8080
}

rules() {
    legacy_rules <<'R'
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:DOCKER - [0:0]
:SERVICES - [0:0]
-A PREROUTING -j SERVICES
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A OUTPUT -j SERVICES
-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
-A POSTROUTING -s 172.18.0.0/16 ! -o app0 -j MASQUERADE
-A POSTROUTING -s 172.17.0.2/32 -d 172.17.0.2/32 -p tcp -m tcp --dport 80 -j MASQUERADE
-A POSTROUTING -s 172.17.0.0/16 -d 172.17.0.3/32 -o docker0 -p tcp -m tcp --dport 80 -j MASQUERADE
-A DOCKER -p tcp -m tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80
-A DOCKER ! -i docker0 -p tcp -m tcp --dport 8081 -j DNAT --to-destination 172.17.0.3:80
-A DOCKER -p tcp -m tcp --dport 8082 -j DNAT --to-destination 172.18.0.2:80
-A DOCKER ! -i docker0 -p udp -m udp --dport 1001 -j DNAT --to-destination 172.17.0.2:1001
-A DOCKER ! -i docker0 -p tcp -m tcp --dport 1001 -j DNAT --to-destination 172.17.0.2:1001
-A SERVICES -d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 172.17.0.3:80
-A SERVICES -d 10.96.0.11/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 172.18.0.2:80
-A SERVICES -i docker0 -p udp -m udp --dport 53 -j REDIRECT --to-ports 53
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:DOCKER - [0:0]
:ISOLATION - [0:0]
-A INPUT -i lo -j ACCEPT
-A INPUT -m conntrack --ctstate INVALID -j DROP
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -i docker0 -p udp -m udp --dport 53 -j ACCEPT
-A INPUT -p icmp -j ACCEPT
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -j ISOLATION
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -j DOCKER
-A FORWARD -i docker0 ! -o docker0 -j ACCEPT
-A FORWARD -i docker0 -o docker0 -j ACCEPT
-A FORWARD -i app0 ! -o app0 -j ACCEPT
-A DOCKER -d 172.17.0.2/32 ! -i docker0 -o docker0 -p tcp -m tcp --dport 80 -j ACCEPT
-A DOCKER -d 172.17.0.3/32 ! -i docker0 -o docker0 -p tcp -m tcp --dport 80 -j ACCEPT
-A DOCKER -d 172.17.0.2/32 ! -i docker0 -o docker0 -p udp -m udp --dport 1001 -j ACCEPT
-A DOCKER -d 172.17.0.2/32 ! -i docker0 -o docker0 -p tcp -m tcp --dport 1001 -j ACCEPT
-A DOCKER -d 172.18.0.2/32 ! -i app0 -o app0 -p tcp -m tcp --dport 80 -m conntrack --ctstate DNAT -j ACCEPT
-A ISOLATION -i docker0 -o app0 -m conntrack ! --ctstate DNAT -j DROP
-A ISOLATION -i app0 -o docker0 -m conntrack --ctstate NEW -j DROP
COMMIT
R
}

traffic() {
    local one
    get s http://192.0.2.10:8080/small
    get s http://192.0.2.10:8081/big
    get s http://192.0.2.10:8082/small
    for one in 192.0.2.10:8080 127.0.0.1:8080 172.17.0.2 10.96.0.10 10.96.0.11; do get r http://$one/small; done
    for one in 192.0.2.10:8080 192.0.2.10:8081 192.0.2.10:8082 172.17.0.3 10.96.0.10 10.96.0.11 172.18.0.2 192.0.2.1; do
        get a --connect-timeout 0.5 http://$one/small
    done
    get b http://192.0.2.10:8080/big
    get b --connect-timeout 0.5 http://10.96.0.10/small
    get d http://192.0.2.1/small
    get d --connect-timeout 0.5 http://192.0.2.10:8080/small
    look_up a 192.0.2.1
    look_up b 172.17.0.1
    look_up d 192.0.2.1
    echoes a 172.17.0.3 2
    echoes a 172.17.0.1 2
    echoes a 192.0.2.1 2
    echoes s 192.0.2.10 2
    flow s tcp 192.0.2.10 1001 2
    flow s udp 192.0.2.10 1001 2
    flow b tcp 172.17.0.2 1001 2
    flow r tcp 172.17.0.2 1001 2
    flowing
}

again() {
    go
    get s http://192.0.2.10:8080/big
    get s --connect-timeout 0.5 --interface 203.0.113.66 http://192.0.2.10:8082/small
    get a http://192.0.2.10:8080/small
    get b http://10.96.0.11/small
    get b http://172.17.0.2/big
    get r http://10.96.0.10/small
    knock s 192.0.2.10 81 8083
    knock b 172.17.0.2 81
    look_up a 8.8.8.8
    echoes b 172.18.0.2 1
    echoes r 172.18.0.2 2
    sleep 0.3
}
