# A docker host: published ports by DNAT and by a proxy in user space, a bridge whose frames pass the IP rules,
# containers that talk with each other, go out, and come back in by the published port.
# needs: python3 curl dnsmasq dig ping socat

setup() {
    ns r a b s
    ip -n r link add docker0 type bridge
    ip -n r link set docker0 up
    wire a eth0 r veth0a1
    wire b eth0 r veth0b1
    ip -n r link set veth0a1 master docker0
    ip -n r link set veth0b1 master docker0
    wire s eth0 r eth0
    addr r docker0 172.17.0.1/16
    addr a eth0 172.17.0.2/16
    addr b eth0 172.17.0.3/16
    addr r eth0 192.0.2.10/24
    addr s eth0 192.0.2.1/24 203.0.113.66/32
    ip -n a route add default via 172.17.0.1
    ip -n b route add default via 172.17.0.1
    ip -n r route add default via 192.0.2.1
    ip -n s route add 172.17.0.0/16 via 192.0.2.10
    forwarding r
    at r sysctl -qw net.ipv4.conf.docker0.route_localnet=1
    web a 80
    web s 80
    names b
    names s
    at r socat TCP-LISTEN:8080,fork,reuseaddr TCP:172.17.0.2:80 &
    listens a 80
    listens s 80
    listens b 53 udp
    listens r 8080
}

rules() {
    legacy_rules <<'R'
*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A PREROUTING -d 172.17.0.2/32 ! -i docker0 -j DROP
-A PREROUTING -d 127.0.0.1/32 ! -i lo -p tcp -m tcp --dport 8080 -j DROP
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:DOCKER - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
-A POSTROUTING -s 172.17.0.2/32 -d 172.17.0.2/32 -p tcp -m tcp --dport 80 -j MASQUERADE
-A DOCKER ! -i docker0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80
-A DOCKER ! -i docker0 -p udp -m udp --dport 5353 -j DNAT --to-destination 172.17.0.3:53
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:DOCKER - [0:0]
:DOCKER-BRIDGE - [0:0]
:DOCKER-CT - [0:0]
:DOCKER-FORWARD - [0:0]
:DOCKER-ISOLATION-STAGE-1 - [0:0]
:DOCKER-ISOLATION-STAGE-2 - [0:0]
:DOCKER-USER - [0:0]
-A FORWARD -j DOCKER-USER
-A FORWARD -j DOCKER-FORWARD
-A DOCKER -d 172.17.0.2/32 ! -i docker0 -o docker0 -p tcp -m tcp --dport 80 -j ACCEPT
-A DOCKER -d 172.17.0.3/32 ! -i docker0 -o docker0 -p udp -m udp --dport 53 -j ACCEPT
-A DOCKER ! -i docker0 -o docker0 -j DROP
-A DOCKER-BRIDGE -o docker0 -j DOCKER
-A DOCKER-CT -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A DOCKER-FORWARD -j DOCKER-CT
-A DOCKER-FORWARD -j DOCKER-ISOLATION-STAGE-1
-A DOCKER-FORWARD -j DOCKER-BRIDGE
-A DOCKER-FORWARD -i docker0 -j ACCEPT
-A DOCKER-ISOLATION-STAGE-1 -i docker0 ! -o docker0 -j DOCKER-ISOLATION-STAGE-2
-A DOCKER-ISOLATION-STAGE-1 -j RETURN
-A DOCKER-ISOLATION-STAGE-2 -o docker0 -j DROP
-A DOCKER-ISOLATION-STAGE-2 -j RETURN
-A DOCKER-USER -s 203.0.113.66/32 -j DROP
-A DOCKER-USER -j RETURN
COMMIT
R
}

traffic() {
    get s http://192.0.2.10:8080/small
    get s http://192.0.2.10:8080/big
    get r http://127.0.0.1:8080/small
    get r http://192.0.2.10:8080/small
    get r http://172.17.0.2/small
    get a http://192.0.2.1/small
    get b http://192.0.2.1/big
    get b http://172.17.0.2/small
    get b http://192.0.2.10:8080/small
    get a http://192.0.2.10:8080/small
    at s dig +tries=1 +time=1 +short -p 5353 @192.0.2.10 example.net
    look_up a 172.17.0.3
    look_up a 192.0.2.1
    echoes a 172.17.0.3 3
    echoes a 192.0.2.1 3
    echoes s 192.0.2.10 2
    echoes r 172.17.0.2 2
    get s --interface 203.0.113.66 http://192.0.2.10:8080/small
    get s http://172.17.0.2/small
    knock s 192.0.2.10 8078 8079 8080 8081
    knock s 172.17.0.3 52 53 54
    knock b 172.17.0.2 81
}
