# Two uplinks by policy routing: marks kept by CONNMARK choose the table, sources too; sets by name.
# needs: python3 curl ping dnsmasq dig ipset socat
# inbound: some connections are the router's own.

setup() {
    ns c r s t
    wire c eth0 r lan0
    wire s eth0 r wan0
    wire t eth0 r wan1
    addr c eth0 10.1.0.10/24 10.1.0.20/24
    addr r lan0 10.1.0.1/24
    addr r wan0 192.0.2.1/24
    addr r wan1 198.51.100.1/24
    addr s eth0 192.0.2.254/24 203.0.113.80/32
    addr t eth0 198.51.100.254/24 203.0.113.80/32
    ip -n c route add default via 10.1.0.1
    ip -n r route add default via 192.0.2.254
    ip -n r route add default via 198.51.100.254 table 101
    ip -n r route add 10.1.0.0/24 dev lan0 table 101
    ip -n r rule add fwmark 0x1/0xff lookup 101 pref 100
    ip -n r rule add from 10.1.0.20 lookup 101 pref 101
    forwarding r
    web s 80
    web t 80 443
    web c 80
    names s
    names t
    listens s 80
    listens t 80
    listens c 80
    listens s 53 udp
    listens t 53 udp
    at r ipset create seen hash:ip
    at r ipset create blocked hash:ip,port
    at r ipset add blocked 203.0.113.80,tcp:81
}

rules() {
    legacy_rules <<'R'
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -j CONNMARK --restore-mark --nfmask 0xff --ctmask 0xff
-A PREROUTING -i wan1 -m mark --mark 0x0/0xff -m conntrack --ctstate NEW -j MARK --set-xmark 0x1/0xff
-A PREROUTING -i lan0 -p tcp -m tcp --dport 443 -m mark --mark 0x0/0xff -j MARK --set-xmark 0x1/0xff
-A PREROUTING -j CONNMARK --save-mark --nfmask 0xff --ctmask 0xff
-A OUTPUT -j CONNMARK --restore-mark --nfmask 0xff --ctmask 0xff
-A OUTPUT -p udp -m udp --dport 53 -j MARK --set-xmark 0x1/0xff
-A POSTROUTING -o wan0
-A POSTROUTING -o wan1
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -i wan0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.1.0.10:80
-A PREROUTING -i wan1 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.1.0.10:80
-A POSTROUTING -o wan0 -j SNAT --to-source 192.0.2.1
-A POSTROUTING -o wan1 -j SNAT --to-source 198.51.100.1
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -p icmp -j ACCEPT
-A INPUT -j SET --add-set seen src
-A FORWARD -p tcp -m set --match-set blocked dst,dst -j REJECT --reject-with tcp-reset
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -m set --match-set seen src -j DROP
-A FORWARD -m conntrack --ctstate DNAT -j ACCEPT
-A FORWARD -i lan0 -o wan0 -j ACCEPT
-A FORWARD -i lan0 -o wan1 -j ACCEPT
COMMIT
R
}

traffic() {
    get c http://203.0.113.80/small
    get c http://203.0.113.80:443/small
    get c http://203.0.113.80:443/big
    get c --interface 10.1.0.20 http://203.0.113.80/small
    get s http://192.0.2.1:8080/small
    get t http://198.51.100.1:8080/small
    get t http://198.51.100.1:8080/big
    echoes s 192.0.2.1 2
    echoes t 198.51.100.1 2
    echoes c 203.0.113.80 2
    echoes c 203.0.113.80 2 -I 10.1.0.20
    look_up r 203.0.113.80
    look_up c 203.0.113.80
    get r http://203.0.113.80/small
    get c http://203.0.113.80:81/
    echo x | at t socat -T 0.1 - UDP:198.51.100.1:9
    get t --connect-timeout 1 http://198.51.100.1:8080/small
    get s http://192.0.2.1:8080/small
}
