# Superframes of both sides: several megabytes each way through router and MASQUERADE, segmentation offload on.
# needs: nginx curl iperf3 ethtool dd
# inbound: one download is the router's own.
offload=${offload:-}

setup() {
    ns c r s
    wire c eth0 r lan0
    wire s eth0 r wan0
    addr c eth0 10.1.0.10/24
    addr r lan0 10.1.0.1/24
    addr r wan0 192.0.2.1/24
    addr s eth0 192.0.2.80/24
    ip -n c route add default via 10.1.0.1
    forwarding r
    local one
    for one in $offload; do
        at "${one%%:*}" ethtool -K "${one##*:}" tso off gso off gro off tx off 2>/dev/null >/dev/null
    done
    web s 80
    at s iperf3 -s -D
    listens s 80
    listens s 5201
}

rules() {
    legacy_rules <<'R'
*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
COMMIT
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A FORWARD -m length --length 0:1500
-A FORWARD -m length --length 1501:65535
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A POSTROUTING -o wan0 -j MASQUERADE
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT
-A FORWARD -i lan0 -j ACCEPT
COMMIT
R
}

traffic() {
    get c http://192.0.2.80/big
    get c -T $lab/www/big -X POST http://192.0.2.80/big
    get r http://192.0.2.80/big
    at c iperf3 -c 192.0.2.80 -n 2M
    at c iperf3 -c 192.0.2.80 -n 2M -R -P 2
    at c iperf3 -c 192.0.2.80 -u -b 20M -n 400K -l 1200
}
