# Two uplinks that `statistic` balances: the connection's mark keeps the choice, `ip rule` follows it; services of the
# host and forwarded ones on both, own connections routed again by their mark, loose rp_filter.
# needs: nginx curl dnsmasq dig ping python3 socat
# one: wan1
# inbound: which uplink own connections took does not come in.

setup() {
    local one
    ns c r s t
    host c lan0 10.1.0.10/24 10.1.0.1 10.1.0.11/24
    host s wan0 192.0.2.254/24 192.0.2.1 203.0.113.80/32
    host t wan1 198.51.100.254/24 198.51.100.1 203.0.113.80/32
    ip -n r route add default via 192.0.2.254
    ip -n r route add default via 192.0.2.254 table 100
    ip -n r route add default via 198.51.100.254 table 101
    ip -n r rule add lookup main suppress_prefixlength 0 pref 90
    ip -n r rule add fwmark 0x100/0xf00 lookup 100 pref 100
    ip -n r rule add fwmark 0x200/0xf00 lookup 101 pref 101
    forwarding r
    at r sysctl -qw net.ipv4.conf.all.rp_filter=2 net.ipv4.conf.all.src_valid_mark=1
    for one in s t; do
        web $one 80 443
        names $one
        echoing $one 1001
    done
    web c 80
    web r 88
    listens s 443
    listens t 443
    listens c 80
    listens r 88
    listens s 53 udp
    listens t 53 udp
}

rules() {
    legacy_rules <<'R'
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:BALANCE - [0:0]
-A PREROUTING -j CONNMARK --restore-mark --nfmask 0xf00 --ctmask 0xf00
-A PREROUTING -i wan0 -m conntrack --ctstate NEW -j CONNMARK --set-xmark 0x100/0xf00
-A PREROUTING -i wan1 -m conntrack --ctstate NEW -j CONNMARK --set-xmark 0x200/0xf00
-A PREROUTING -i lan0 -m mark --mark 0x0/0xf00 -m conntrack --ctstate NEW -j BALANCE
-A OUTPUT -j CONNMARK --restore-mark --nfmask 0xf00 --ctmask 0xf00
-A OUTPUT -m mark --mark 0x0/0xf00 -m conntrack --ctstate NEW -j BALANCE
-A OUTPUT -o wan0 -m mark --mark 0x200/0xf00
-A POSTROUTING -o wan0 -m mark --mark 0x100/0xf00
-A POSTROUTING -o wan1 -m mark --mark 0x200/0xf00
-A POSTROUTING -s 192.0.2.1/32 -o wan1
-A BALANCE -d 10.0.0.0/8 -j RETURN
-A BALANCE -m statistic --mode nth --every 2 --packet 0 -j MARK --set-xmark 0x100/0xf00
-A BALANCE -m mark --mark 0x0/0xf00 -j MARK --set-xmark 0x200/0xf00
-A BALANCE -j CONNMARK --save-mark --nfmask 0xf00 --ctmask 0xf00
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING ! -i lan0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.1.0.10:80
-A POSTROUTING -o wan0 -j MASQUERADE
-A POSTROUTING -o wan1 -j MASQUERADE
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -i lo -j ACCEPT
-A INPUT -m conntrack --ctstate INVALID -j DROP
-A INPUT -i wan0 -m connmark --mark 0x200/0xf00 -j DROP
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -p tcp -m tcp --dport 88 -j ACCEPT
-A INPUT -p icmp -j ACCEPT
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -i wan0 -m connmark --mark 0x200/0xf00 -j DROP
-A FORWARD -i wan1 -m connmark --mark 0x100/0xf00 -j DROP
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -m conntrack --ctstate DNAT -j ACCEPT
-A FORWARD -i lan0 -j ACCEPT
-A OUTPUT -o wan0 -m conntrack --ctstate NEW
-A OUTPUT -o wan1 -m conntrack --ctstate NEW
COMMIT
R
}

traffic() {
    local turn
    for turn in 1 2 3; do get c http://203.0.113.80/small; get r http://203.0.113.80/small; done
    get c http://203.0.113.80:443/big
    get c --interface 10.1.0.11 http://203.0.113.80/big
    get s http://192.0.2.1:8080/small
    get t http://198.51.100.1:8080/big
    get s http://192.0.2.1:88/small
    get t http://198.51.100.1:88/small
    get t http://192.0.2.1:88/small
    get c http://10.1.0.1:88/small
    for turn in 1 2; do look_up c 203.0.113.80; look_up r 203.0.113.80; done
    echoes c 203.0.113.80 2
    echoes r 203.0.113.80 2
    echoes t 198.51.100.1 2
    echoes r 10.1.0.10 2
    for turn in 1 2; do
        flow c tcp 203.0.113.80 1001 2
        flow r tcp 203.0.113.80 1001 2
        flow c udp 203.0.113.80 1001 1
    done
    flowing
}

again() {
    local turn
    go
    for turn in 1 2 3; do get c http://203.0.113.80/small; get r http://203.0.113.80:443/small; done
    get r http://203.0.113.80/big
    get c http://203.0.113.80:81/
    get r http://203.0.113.80:81/
    get t http://198.51.100.1:8080/small
    get s http://192.0.2.1:89/
    echo closed | at r socat -T 0.2 - UDP:203.0.113.80:99
    echo closed | at c socat -T 0.2 - UDP:203.0.113.80:99
    echoes t 192.0.2.1 2
    echoes c 203.0.113.80 3
    sleep 0.3
}
