# Rules changed midway while flows stand: inserted, deleted, replaced as a whole; policies, NAT for flows that had none,
# a set that loses a member.
# needs: curl dnsmasq dig ping python3 socat ipset
# one: wan0

setup() {
    ns c d r s
    host c lan0 10.1.0.10/24 10.1.0.1
    host d lan1 10.2.0.10/24 10.2.0.1
    host s wan0 192.0.2.80/24 192.0.2.1
    ip -n r route add default via 192.0.2.80
    forwarding r
    web s 80 443
    web d 80
    web r 88
    names s
    echoing s 1001
    echoing s 1002
    echoing r 1003
    listens s 443
    listens d 80
    listens r 88
    listens s 53 udp
    at r ipset create friends hash:ip
    at r ipset add friends 10.1.0.10
    at r ipset add friends 192.0.2.80
}

rules() {
    legacy_rules <<'R'
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -i lan0 -m conntrack --ctstate NEW -j CONNMARK --set-xmark 0x1/0xffffffff
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -m set --match-set friends src -m conntrack --ctstate NEW
-A INPUT -p tcp -m tcp --dport 89 -j REJECT --reject-with tcp-reset
-A FORWARD -m conntrack --ctstate NEW
-A FORWARD -m conntrack --ctstate ESTABLISHED
-A FORWARD -p tcp -m tcp --dport 443 -j DROP
COMMIT
R
}

change() {
    at r ipset del friends 10.1.0.10
    at r iptables-legacy -I FORWARD 2 -m conntrack --ctstate INVALID -j DROP
    at r iptables-legacy -I FORWARD 3 -p tcp --dport 1001 -j REJECT --reject-with tcp-reset
    at r iptables-legacy -D INPUT 2
    at r iptables-legacy -A INPUT -p tcp --dport 1003 -m conntrack --ctstate NEW -j ACCEPT
    at r iptables-legacy -A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
    at r iptables-legacy -A INPUT -p icmp -j ACCEPT
    at r iptables-legacy -P INPUT DROP
    at r iptables-legacy -D FORWARD -p tcp --dport 443 -j DROP
    at r iptables-legacy -A FORWARD -p tcp --dport 80 -s 10.2.0.0/24 -m conntrack --ctstate NEW -j DROP
    at r iptables-legacy -A FORWARD -i lan1 -m conntrack --ctstate NEW -j REJECT
    at r iptables-legacy-restore -c <<'R'
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -j CONNMARK --restore-mark --nfmask 0xffffffff --ctmask 0xffffffff
-A FORWARD -m mark --mark 0x1
-A FORWARD -m connmark --mark 0x0
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -i wan0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.2.0.10:80
-A OUTPUT -d 192.0.2.80/32 -p tcp -m tcp --dport 8443 -j DNAT --to-destination 192.0.2.80:443
-A POSTROUTING -o wan0 -j MASQUERADE
COMMIT
R
}

traffic() {
    get c http://192.0.2.80/small
    get c --connect-timeout 0.5 http://192.0.2.80:443/small
    get d http://192.0.2.80/big
    get r http://192.0.2.80/small
    get s http://10.2.0.10/small
    get s http://192.0.2.1:88/small
    knock s 192.0.2.1 89 90
    look_up c 192.0.2.80
    echoes c 192.0.2.80 2 -e 77
    echoes s 192.0.2.1 2 -e 78
    flow c tcp 192.0.2.80 1001 2
    flow c tcp 192.0.2.80 1002 2
    flow d udp 192.0.2.80 1002 2
    flow d udp 192.0.2.80 1001 1
    flow s tcp 192.0.2.1 1003 2
    flow r tcp 192.0.2.80 1002 2
    flow r udp 192.0.2.80 1002 2
    flowing
}

again() {
    go
    get c http://192.0.2.80:443/small
    get d --connect-timeout 0.5 http://192.0.2.80/small
    get s http://192.0.2.1:8080/small
    get r http://192.0.2.80:8443/big
    get s --connect-timeout 0.5 http://192.0.2.1:88/small
    look_up c 192.0.2.80
    look_up d 192.0.2.80
    echoes c 192.0.2.80 2 -e 77
    echoes c 192.0.2.80 2
    echoes s 192.0.2.1 2 -e 78
    echoes r 192.0.2.80 2
    knock s 192.0.2.1 89 1003
    sleep 0.5
}
