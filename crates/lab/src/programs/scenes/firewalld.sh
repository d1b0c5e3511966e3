# firewalld's manner: zones by interface, policies between them, rpfilter in raw, logging, both families.
# needs: nginx curl dnsmasq dig ping nmap hping3
settle=1.5

setup() {
    ns c r s
    wire c eth0 r int0
    wire s eth0 r ext0
    addr c eth0 10.1.0.10/24 2001:db8:1::10/64
    addr r int0 10.1.0.1/24 2001:db8:1::1/64
    addr r ext0 192.0.2.1/24 2001:db8:2::1/64
    addr s eth0 192.0.2.80/24 2001:db8:2::80/64
    ip -n c route add default via 10.1.0.1
    ip -n c route add default via 2001:db8:1::1
    ip -n s route add default via 2001:db8:2::1
    forwarding r
    web s 80
    web r 80 8080
    names s
    names r
    listens s 80
    listens r 80
    listens s 53 udp
    listens r 53 udp
}

zone_filter() {
    cat <<R
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:INPUT_ZONES - [0:0]
:FORWARD_POLICIES - [0:0]
:IN_external - [0:0]
:IN_external_allow - [0:0]
:IN_internal - [0:0]
:IN_internal_allow - [0:0]
:FWD_int_ext - [0:0]
:FWD_ext_int - [0:0]
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED,DNAT -j ACCEPT
-A INPUT -i lo -j ACCEPT
-A INPUT -j INPUT_ZONES
-A INPUT -m conntrack --ctstate INVALID -j DROP
-A INPUT -j REJECT --reject-with $1
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED,DNAT -j ACCEPT
-A FORWARD -i lo -j ACCEPT
-A FORWARD -j FORWARD_POLICIES
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -j REJECT --reject-with $1
-A OUTPUT -o lo -j ACCEPT
-A INPUT_ZONES -i ext0 -g IN_external
-A INPUT_ZONES -i int0 -g IN_internal
-A INPUT_ZONES -g IN_external
-A FORWARD_POLICIES -i int0 -o ext0 -g FWD_int_ext
-A FORWARD_POLICIES -i ext0 -o int0 -g FWD_ext_int
-A IN_external -j IN_external_allow
-A IN_external -p $2 -j ACCEPT
-A IN_external_allow -p tcp -m tcp --dport 22 -m conntrack --ctstate NEW,UNTRACKED -j ACCEPT
-A IN_external_allow -p tcp -m tcp --dport 80 -m conntrack --ctstate NEW,UNTRACKED -j ACCEPT
-A IN_internal -j IN_internal_allow
-A IN_internal -p $2 -j ACCEPT
-A IN_internal_allow -p tcp -m tcp --dport 8080 -m conntrack --ctstate NEW,UNTRACKED -j ACCEPT
-A IN_internal_allow -p udp -m udp --dport 53 -m conntrack --ctstate NEW,UNTRACKED -j ACCEPT
-A FWD_int_ext -j ACCEPT
-A FWD_ext_int -p $2 -j ACCEPT
-A FWD_ext_int -p tcp -m tcp --dport 8443 -j DROP
COMMIT
R
}

rules() {
    {
        zone_filter icmp-host-prohibited icmp
        cat <<'R'
*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A PREROUTING -m rpfilter --validmark --invert -j DROP
COMMIT
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:POST_external - [0:0]
:PRE_external - [0:0]
-A PREROUTING -i ext0 -g PRE_external
-A POSTROUTING -o ext0 -g POST_external
-A POST_external ! -o lo -j MASQUERADE
-A PRE_external -p tcp -m tcp --dport 2080 -j REDIRECT --to-ports 80
COMMIT
R
    } | legacy_rules
    {
        zone_filter icmp6-adm-prohibited ipv6-icmp
        cat <<'R'
*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A PREROUTING -p ipv6-icmp -m icmp6 --icmpv6-type 134 -j ACCEPT
-A PREROUTING -p ipv6-icmp -m icmp6 --icmpv6-type 135 -j ACCEPT
-A PREROUTING -m rpfilter --validmark --invert -j DROP
COMMIT
R
    } | legacy_rules6
}

traffic() {
    get c http://192.0.2.80/small
    get c http://192.0.2.80/big
    get c http://10.1.0.1:8080/small
    get c http://10.1.0.1/small
    get s http://192.0.2.1/small
    get s http://192.0.2.1:2080/small
    get s http://192.0.2.1:8080/small
    get s 'http://[2001:db8:2::1]/small'
    get s 'http://[2001:db8:2::1]:8080/small'
    get s 'http://[2001:db8:1::10]/small'
    get c 'http://[2001:db8:2::80]/big'
    get c 'http://[2001:db8:1::1]/small'
    look_up c 10.1.0.1
    look_up c 192.0.2.80
    look_up c 2001:db8:1::1
    look_up s 192.0.2.1
    echoes c 192.0.2.80 2
    echoes c 2001:db8:2::80 2
    echoes s 192.0.2.1 2
    echoes s 2001:db8:1::10 2
    at s nmap -n -Pn -sS --max-retries 0 -p 20-30 192.0.2.1
    at s nmap -6 -n -Pn -sS --max-retries 0 -p 75-85,8443 2001:db8:1::10
    at s nmap -n -Pn -sU --max-retries 0 --host-timeout 2s -p 53,67 192.0.2.1
    at s hping3 -q -c 3 -i u10000 -S -p 80 -a 10.1.0.77 192.0.2.1
}
