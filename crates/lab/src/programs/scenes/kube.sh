# A cluster node as kube-proxy lays it out: services by `statistic` in random and nth mode, affinity by `recent`,
# a node port, marks that ask for MASQUERADE.
# needs: python3 curl dnsmasq dig ping socat
# inbound: nothing tells the endpoints that were drawn.

setup() {
    ns r a b c s
    for pod in a b c; do wire $pod eth0 r cali$pod; done
    wire s eth0 r eth0
    addr r eth0 192.0.2.10/24
    addr s eth0 192.0.2.1/24
    ip -n r route add default via 192.0.2.1
    ip -n s route add 10.244.0.0/16 via 192.0.2.10
    forwarding r
    local last=2 pod
    for pod in a b c; do
        addr $pod eth0 10.244.1.$last/32
        ip -n $pod route add 169.254.1.1 dev eth0
        ip -n $pod route add default via 169.254.1.1
        ip -n r route add 10.244.1.$last dev cali$pod
        at r sysctl -qw net.ipv4.conf.cali$pod.proxy_arp=1
        at r ip neigh add proxy 169.254.1.1 dev cali$pod
        last=$((last + 1))
    done
    web a 8080
    web b 8080
    web s 80
    names a
    names b
    listens a 8080
    listens b 8080
    listens b 53 udp
}

rules() {
    legacy_rules <<'R'
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-DNS - [0:0]
:KUBE-SVC-NTH - [0:0]
:KUBE-SVC-STICKY - [0:0]
:KUBE-SVC-WEB - [0:0]
:KUBE-SEP-A - [0:0]
:KUBE-SEP-B - [0:0]
:KUBE-SEP-DNS-A - [0:0]
:KUBE-SEP-DNS-B - [0:0]
:KUBE-SEP-STICKY-A - [0:0]
:KUBE-SEP-STICKY-B - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A KUBE-NODEPORTS -p tcp -m tcp --dport 30080 -j KUBE-MARK-MASQ
-A KUBE-NODEPORTS -p tcp -m tcp --dport 30080 -j KUBE-SVC-WEB
-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
-A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0
-A KUBE-POSTROUTING -j MASQUERADE --random-fully
-A KUBE-SERVICES -d 10.96.0.10/32 -p udp -m udp --dport 53 -j KUBE-SVC-DNS
-A KUBE-SERVICES -d 10.96.0.80/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-WEB
-A KUBE-SERVICES -d 10.96.0.81/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-NTH
-A KUBE-SERVICES -d 10.96.0.82/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-STICKY
-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
-A KUBE-SVC-DNS -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-DNS-A
-A KUBE-SVC-DNS -j KUBE-SEP-DNS-B
-A KUBE-SVC-NTH -m statistic --mode nth --every 2 --packet 0 -j KUBE-SEP-A
-A KUBE-SVC-NTH -j KUBE-SEP-B
-A KUBE-SVC-STICKY -m recent --rcheck --seconds 10800 --reap --name STICKY-A --mask 255.255.255.255 --rsource -j KUBE-SEP-STICKY-A
-A KUBE-SVC-STICKY -m recent --rcheck --seconds 10800 --reap --name STICKY-B --mask 255.255.255.255 --rsource -j KUBE-SEP-STICKY-B
-A KUBE-SVC-STICKY -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-STICKY-A
-A KUBE-SVC-STICKY -j KUBE-SEP-STICKY-B
-A KUBE-SVC-WEB ! -s 10.244.0.0/16 -d 10.96.0.80/32 -p tcp -m tcp --dport 80 -j KUBE-MARK-MASQ
-A KUBE-SVC-WEB -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-A
-A KUBE-SVC-WEB -j KUBE-SEP-B
-A KUBE-SEP-A -s 10.244.1.2/32 -j KUBE-MARK-MASQ
-A KUBE-SEP-A -p tcp -m tcp -j DNAT --to-destination 10.244.1.2:8080
-A KUBE-SEP-B -s 10.244.1.3/32 -j KUBE-MARK-MASQ
-A KUBE-SEP-B -p tcp -m tcp -j DNAT --to-destination 10.244.1.3:8080
-A KUBE-SEP-DNS-A -p udp -m udp -j DNAT --to-destination 10.244.1.2:53
-A KUBE-SEP-DNS-B -p udp -m udp -j DNAT --to-destination 10.244.1.3:53
-A KUBE-SEP-STICKY-A -p tcp -m recent --set --name STICKY-A --mask 255.255.255.255 --rsource -m tcp -j DNAT --to-destination 10.244.1.2:8080
-A KUBE-SEP-STICKY-B -p tcp -m recent --set --name STICKY-B --mask 255.255.255.255 --rsource -m tcp -j DNAT --to-destination 10.244.1.3:8080
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:KUBE-EXTERNAL-SERVICES - [0:0]
:KUBE-FIREWALL - [0:0]
:KUBE-FORWARD - [0:0]
:KUBE-SERVICES - [0:0]
-A INPUT -j KUBE-FIREWALL
-A INPUT -m conntrack --ctstate NEW -j KUBE-EXTERNAL-SERVICES
-A FORWARD -j KUBE-FORWARD
-A FORWARD -m conntrack --ctstate NEW -j KUBE-SERVICES
-A FORWARD -i cali+ -j ACCEPT
-A FORWARD -o cali+ -p tcp -m tcp --dport 8080 -j ACCEPT
-A OUTPUT -m conntrack --ctstate NEW -j KUBE-SERVICES
-A OUTPUT -j KUBE-FIREWALL
-A KUBE-FIREWALL -m mark --mark 0x8000/0x8000 -j DROP
-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP
-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
-A KUBE-FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT
-A KUBE-FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A KUBE-SERVICES -d 10.96.0.99/32 -p tcp -m tcp --dport 80 -j REJECT --reject-with icmp-port-unreachable
COMMIT
R
}

traffic() {
    local turn
    for turn in 1 2 3 4 5 6; do
        get c http://10.96.0.80/small
        get c http://10.96.0.81/small
        get c http://10.96.0.82/small
        at c dig +tries=1 +time=1 +short @10.96.0.10 example.net >/dev/null
        get s http://192.0.2.10:30080/small
    done
    get a http://10.96.0.81/small
    get a http://10.96.0.81/small
    get r http://10.96.0.80/small
    get r http://192.0.2.10:30080/small
    get c http://10.96.0.80/big
    get c http://10.96.0.99/
    get c http://192.0.2.1/small
    get s http://192.0.2.10:30081/
    echoes c 10.244.1.2 2
    echoes a 192.0.2.1 2
}
