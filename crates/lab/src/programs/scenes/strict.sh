# A host that lets out only what it must: OUTPUT drops and rejects, loopback, its own clients and a server.
# needs: nginx curl dnsmasq dig ping nmap
# inbound: most connections are the host's, and its own packets are not recorded.

setup() {
    ns r s
    wire s eth0 r eth0
    addr r eth0 192.0.2.10/24
    addr s eth0 192.0.2.1/24
    ip -n r route add default via 192.0.2.1
    web r 80 8080
    web s 80 81
    names s
    listens r 80
    listens s 80
    listens s 53 udp
}

rules() {
    legacy_rules <<'R'
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT DROP [0:0]
-A INPUT -i lo -j ACCEPT
-A INPUT -m conntrack --ctstate INVALID -j DROP
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -p tcp -m tcp --dport 80 -m conntrack --ctstate NEW -j ACCEPT
-A INPUT -p icmp -m icmp --icmp-type 8 -j ACCEPT
-A INPUT -p udp -j REJECT --reject-with icmp-port-unreachable
-A INPUT -p tcp -j REJECT --reject-with tcp-reset
-A OUTPUT -o lo -j ACCEPT
-A OUTPUT -m conntrack --ctstate INVALID -j DROP
-A OUTPUT -p icmp -m conntrack --ctstate RELATED -j ACCEPT
-A OUTPUT -m conntrack --ctstate RELATED -j ACCEPT
-A OUTPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT
-A OUTPUT -d 192.0.2.1/32 -p udp -m udp --dport 53 -j ACCEPT
-A OUTPUT -p tcp -m tcp --dport 80 -m conntrack --ctstate NEW -j ACCEPT
-A OUTPUT -p icmp -m icmp --icmp-type 8 -j ACCEPT
-A OUTPUT -p tcp -m tcp --dport 81 -j REJECT --reject-with tcp-reset
-A OUTPUT -p udp -m udp --dport 123 -j REJECT --reject-with icmp-port-unreachable
COMMIT
R
}

traffic() {
    get r http://192.0.2.1/small
    get r http://192.0.2.1/big
    get r http://192.0.2.1:81/small
    get r --connect-timeout 1 http://192.0.2.1:82/small
    get r http://127.0.0.1:8080/small
    get r http://192.0.2.10:8080/small
    look_up r 192.0.2.1
    echo x | at r socat -T 0.2 - UDP:192.0.2.1:123
    echo x | at r socat -T 0.2 - UDP:192.0.2.1:9
    echoes r 192.0.2.1 3
    echoes r 127.0.0.1 2
    get s http://192.0.2.10/small
    get s http://192.0.2.10/big
    get s http://192.0.2.10:8080/small
    echoes s 192.0.2.10 3
    at s nmap -n -Pn -sS --max-retries 0 -p 75-85 192.0.2.10
    at s nmap -n -Pn -sU --max-retries 0 --host-timeout 2s -p 67-69 192.0.2.10
    at s nmap -n -Pn -sA --max-retries 0 -p 80-82 192.0.2.10
}
