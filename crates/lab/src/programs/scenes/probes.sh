# Probes at the firewall and through it: traceroute by UDP, ICMP and TCP, nmap's scans, hping3, both families; rules
# that drop, reject in four ways, limit; ports that are closed.
# needs: nginx curl nmap traceroute hping3 ping python3 socat
# one: wan0
# inbound: traces from the firewall itself.

setup() {
    ns c r s
    host c lan0 10.1.0.10/24 10.1.0.1
    host s wan0 192.0.2.80/24 192.0.2.1 203.0.113.80/32
    addr c eth0 2001:db8:1::10/64
    addr r lan0 2001:db8:1::1/64
    addr r wan0 2001:db8:2::1/64
    addr s eth0 2001:db8:2::80/64
    ip -n c route add default via 2001:db8:1::1
    ip -n s route add default via 2001:db8:2::1
    ip -n r route add default via 192.0.2.80
    forwarding r
    web c 80
    web s 80
    web r 22
    echoing s 1001
    listens c 80
    listens s 80
    listens r 22
}

rules() {
    legacy_rules <<'R'
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -d 192.0.2.1/32 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.1.0.10:80
-A PREROUTING -d 192.0.2.1/32 -p tcp -m tcp --dport 8083 -j DNAT --to-destination 10.1.0.10:83
-A POSTROUTING -s 10.1.0.0/24 -o wan0 -j MASQUERADE
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -i lo -j ACCEPT
-A INPUT -m conntrack --ctstate INVALID -j DROP
-A INPUT -m conntrack --ctstate RELATED -j ACCEPT
-A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT
-A INPUT -p tcp -m tcp --tcp-flags FIN,SYN,RST,PSH,ACK,URG NONE -j DROP
-A INPUT -p tcp -m tcp --tcp-flags FIN,PSH,URG FIN,PSH,URG -j DROP
-A INPUT -p tcp -m multiport --dports 22,23,24 -j ACCEPT
-A INPUT -p tcp -m tcp --dport 25 -j REJECT --reject-with tcp-reset
-A INPUT -p tcp -m tcp --dport 26 -j REJECT --reject-with icmp-admin-prohibited
-A INPUT -p udp -m udp --dport 33434:33440 -j REJECT --reject-with icmp-port-unreachable
-A INPUT -p udp -m udp --dport 53 -j ACCEPT
-A INPUT -p icmp -m icmp --icmp-type 8 -m limit --limit 2/sec --limit-burst 3 -j ACCEPT
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -m conntrack --ctstate RELATED -j ACCEPT
-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT
-A FORWARD -p tcp -m tcp --dport 82 -j REJECT --reject-with tcp-reset
-A FORWARD -p udp -m udp --dport 162 -j REJECT --reject-with icmp-host-unreachable
-A FORWARD -m conntrack --ctstate DNAT -j ACCEPT
-A FORWARD -i lan0 -j ACCEPT
-A OUTPUT -p tcp -m tcp --tcp-flags RST RST
-A OUTPUT -p icmp -m icmp --icmp-type 3 -m conntrack --ctstate RELATED
-A OUTPUT -p icmp -m icmp --icmp-type 11 -m conntrack --ctstate RELATED
-A OUTPUT -m conntrack --ctstate INVALID
COMMIT
R
    legacy_rules6 <<'R'
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -p ipv6-icmp -j ACCEPT
-A INPUT -p tcp -m multiport --dports 22,23 -j ACCEPT
-A INPUT -p tcp -j REJECT --reject-with tcp-reset
-A INPUT -p udp -j REJECT --reject-with icmp6-adm-prohibited
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -i lan0 -j ACCEPT
-A FORWARD -j REJECT --reject-with icmp6-port-unreachable
-A OUTPUT -m conntrack --ctstate RELATED
COMMIT
R
}

scan() { at "$1" timeout 20 nmap -n -Pn -T4 --max-retries 1 --host-timeout 10s "${@:2}"; }

traffic() {
    local from
    for from in c s; do at $from traceroute -n -q 1 -w 0.3 -m 3 203.0.113.80; done
    at c traceroute -n -I -q 1 -w 0.3 -m 3 203.0.113.80
    at c traceroute -n -T -p 80 -q 1 -w 0.3 -m 3 203.0.113.80
    at c traceroute -n -6 -q 1 -w 0.3 -m 3 2001:db8:2::80
    at s traceroute -n -q 1 -w 0.3 -m 2 192.0.2.1
    at s traceroute -n -T -p 8080 -q 1 -w 0.3 -m 3 192.0.2.1
    at r traceroute -n -q 1 -w 0.3 -m 2 203.0.113.80
    scan s -sS -p 22-27,8080,8083 192.0.2.1
    scan s -sT -p 22-26 192.0.2.1
    scan s -sU -p 53,54,33435 192.0.2.1
    scan c -sS -p 79-83 203.0.113.80
    scan c -sU -p 53,162 203.0.113.80
    flow c tcp 203.0.113.80 1001 2
    flowing
}

again() {
    go
    scan s -sA -p 22-26,8080 192.0.2.1
    scan s -sN -p 22,23,27 192.0.2.1
    scan s -sX -p 22,27 192.0.2.1
    scan s -sS -f -p 22-24 192.0.2.1
    scan s -O -p 22,23,8080 192.0.2.1
    scan s -6 -sS -p 22-24 2001:db8:2::1
    scan s -6 -sU -p 53 2001:db8:2::1
    scan s -6 -sS -p 80,81 2001:db8:1::10
    scan r -sS -p 80,81 203.0.113.80
    at c hping3 -q -c 3 -i u20000 -S -p 80 203.0.113.80
    at s hping3 -q -c 6 -i u20000 --icmp 192.0.2.1
    at s hping3 -q -c 2 -i u20000 -R -p 8080 192.0.2.1
    at r hping3 -q -c 2 -i u20000 -S -p 81 192.0.2.80
    get s http://192.0.2.1:8080/small
    sleep 0.5
}
