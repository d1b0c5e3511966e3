# A reverse proxy on the firewall: haproxy before two web servers, redirected to on the way in, translated on the way
# out; a server that OUTPUT refuses, one without a process.
# needs: haproxy nginx curl ping python3 socat
# one: wan0
# inbound: half of it is the proxy's own.

setup() {
    ns c r a b
    host c wan0 203.0.113.9/24 203.0.113.1 203.0.113.66/24
    host a dmz0 10.2.0.10/24 10.2.0.1
    host b dmz1 10.3.0.10/24 10.3.0.1
    ip -n r route add default via 203.0.113.9
    forwarding r
    web a 80
    web b 80 8443
    echoing b 1001
    cat >$lab/haproxy.cfg <<'H'
global
    user haproxy
defaults
    mode http
    retries 1
    timeout connect 500ms
    timeout client 3s
    timeout server 3s
frontend web
    bind :80
    use_backend gone if { path_beg /gone }
    use_backend refused if { path_beg /refused }
    default_backend webs
backend webs
    server a 10.2.0.10:80 check inter 400ms
    server b 10.99.0.80:80 check inter 400ms
backend gone
    server gone 10.2.0.10:81
backend refused
    server refused 10.3.0.66:80
listen lines
    mode tcp
    timeout client 30s
    timeout server 30s
    bind :7000
    server lines 10.3.0.10:1001
H
    at r haproxy -D -f $lab/haproxy.cfg -p $lab/haproxy.pid
    listens r 80
    listens a 80
    listens b 8443
}

rules() {
    legacy_rules <<'R'
*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A OUTPUT -d 10.99.0.80/32 -o wan0
-A OUTPUT -d 10.3.0.10/32 -o dmz1
COMMIT
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -i wan0 -p tcp -m tcp --dport 8080
-A PREROUTING -d 10.3.0.1/32 -i dmz1 -p tcp
-A INPUT -d 203.0.113.1/32 -i dmz1 -p tcp
-A INPUT -i wan0 -p tcp -m tcp --dport 80
-A OUTPUT -s 203.0.113.1/32 -d 10.99.0.80/32
-A OUTPUT -p tcp -m tcp --sport 80
-A OUTPUT -p tcp -m tcp --sport 8080
-A POSTROUTING -o dmz1
-A POSTROUTING -s 203.0.113.1/32 -o dmz1
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -i wan0 -p tcp -m tcp --dport 8080 -j REDIRECT --to-ports 80
-A PREROUTING -i wan0 -p tcp -m tcp --dport 8443 -j DNAT --to-destination 10.3.0.10
-A OUTPUT -d 10.99.0.80/32 -p tcp -j DNAT --to-destination 10.3.0.10
-A POSTROUTING -o dmz1 -j SNAT --to-source 10.3.0.1
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT DROP [0:0]
-A INPUT -i lo -j ACCEPT
-A INPUT -m conntrack --ctstate INVALID -j DROP
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -i wan0 -p tcp -m multiport --dports 80,7000 -m conntrack --ctstate NEW -j ACCEPT
-A INPUT -p icmp -j ACCEPT
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -m conntrack --ctstate DNAT -j ACCEPT
-A OUTPUT -o lo -j ACCEPT
-A OUTPUT -p tcp -m tcp --dport 80 -m owner --uid-owner haproxy
-A OUTPUT -d 10.3.0.66/32 -p tcp -j REJECT --reject-with icmp-admin-prohibited
-A OUTPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A OUTPUT -d 10.2.0.10/32 -p tcp -m multiport --dports 80,81 -m conntrack --ctstate NEW -j ACCEPT
-A OUTPUT -d 10.3.0.10/32 -p tcp -m conntrack --ctstate NEW -j ACCEPT
-A OUTPUT -o dmz0 -p icmp -j ACCEPT
COMMIT
R
}

traffic() {
    get c http://203.0.113.1/small
    get c http://203.0.113.1/small
    get c http://203.0.113.1/big
    get c http://203.0.113.1:8080/small
    get c -T $lab/www/big -X POST http://203.0.113.1/big
    get c http://203.0.113.1/gone
    get c http://203.0.113.1/refused
    get c http://203.0.113.1:8443/small
    get r http://203.0.113.1/small
    get r http://10.99.0.80/small
    echoes c 203.0.113.1 2
    echoes r 10.2.0.10 2
    knock c 203.0.113.1 81 82
    flow c tcp 203.0.113.1 7000 2
    flow r tcp 10.99.0.80 1001 2
    flowing
}

again() {
    go
    get c --max-time 0.05 --limit-rate 100k http://203.0.113.1/big
    get c --interface 203.0.113.66 http://203.0.113.1:8080/big
    get c http://203.0.113.1/small
    get c http://203.0.113.1/refused
    get c http://203.0.113.1:8443/big
    get r http://10.2.0.10/small
    echoes c 10.2.0.10 2
    echoes r 10.3.0.10 2
    sleep 0.3
}
