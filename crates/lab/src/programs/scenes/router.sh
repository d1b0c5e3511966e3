# A plain router with stateful rules between a LAN and a server: web, names, pings, traceroute, refusals.
# needs: nginx curl dnsmasq dig ping traceroute nmap

setup() {
    ns c r s
    wire c eth0 r lan0
    wire s eth0 r wan0
    addr c eth0 10.1.0.10/24
    addr r lan0 10.1.0.1/24
    addr r wan0 192.0.2.1/24
    addr s eth0 192.0.2.80/24
    ip -n c route add default via 10.1.0.1
    ip -n s route add default via 192.0.2.1
    forwarding r
    web s 80 443
    names s
    listens s 80
    listens s 53 udp
}

rules() {
    legacy_rules <<'R'
*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A PREROUTING -i lan0
-A PREROUTING -i wan0
COMMIT
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A FORWARD -i lan0 -o wan0 -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu
-A POSTROUTING -o lan0
-A POSTROUTING -o wan0
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -i lan0 -p tcp -m tcp --dport 22 -j ACCEPT
-A INPUT -p icmp -m icmp --icmp-type 8 -j ACCEPT
-A INPUT -i wan0 -p tcp -j REJECT --reject-with tcp-reset
-A INPUT -i wan0 -j REJECT --reject-with icmp-port-unreachable
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -i lan0 -o wan0 -p tcp -m multiport --dports 80,443 -m conntrack --ctstate NEW -j ACCEPT
-A FORWARD -i lan0 -p udp -m udp --dport 53 -j ACCEPT
-A FORWARD -i lan0 -p icmp -m icmp --icmp-type 8 -j ACCEPT
-A FORWARD -i lan0 -p udp -m udp --dport 33434:33534 -j ACCEPT
-A FORWARD -i lan0 -p tcp -j REJECT --reject-with tcp-reset
-A FORWARD -i lan0 -j REJECT --reject-with icmp-admin-prohibited
-A OUTPUT -m conntrack --ctstate INVALID -j DROP
-A OUTPUT -m conntrack --ctstate RELATED
COMMIT
R
}

traffic() {
    get c http://192.0.2.80/small
    get c http://192.0.2.80/big
    get c http://192.0.2.80:443/small
    get c http://192.0.2.80:81/ http://192.0.2.80:82/
    look_up c 192.0.2.80
    look_up c 192.0.2.80 AAAA
    echoes c 192.0.2.80 5
    echoes c 10.1.0.1 3
    echoes c 192.0.2.80 3 -s 4000
    at c traceroute -n -q 1 -w 0.3 -m 4 192.0.2.80
    at c traceroute -n -q 1 -w 0.3 -m 3 -I 192.0.2.80
    echoes c 192.0.2.80 1 -t 1
    at c nmap -n -Pn -sS --max-retries 0 -p 20-60 192.0.2.80
    at c nmap -n -Pn -sS --max-retries 0 -p 20-30 10.1.0.1
    at s nmap -n -Pn -sS --max-retries 0 -p 20-30 192.0.2.1
    at s nmap -n -Pn -sU --max-retries 0 --host-timeout 2s -p 67-69 192.0.2.1
    get s http://10.1.0.10/
}
