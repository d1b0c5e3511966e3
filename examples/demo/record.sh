#!/usr/bin/env bash
# Records the capture of `tamis demo`: a client in an office, its router, and hosts outside, each in a
# network namespace, with real programs talking (curl, dig, ping, nc, python3's http.server, dnsmasq).
# tcpdump listens on the router's office side; the router has no rules, so that everything is seen.
#
# Needs root. Everything happens in three namespaces that are removed at the end.
set -euo pipefail
out=$(realpath -m "${1:?usage: record.sh OUTPUT.pcap}")
work=$(mktemp -d)
cleanup() {
    for ns in tamis-lan tamis-router tamis-wan; do
        ip netns pids $ns 2>/dev/null | xargs -r kill 2>/dev/null || true
        ip netns del $ns 2>/dev/null || true
    done
    rm -rf "$work"
}
trap cleanup EXIT

for ns in lan router wan; do
    ip netns add tamis-$ns
    ip -n tamis-$ns link set lo up
done
lan() { ip netns exec tamis-lan "$@"; }
router() { ip netns exec tamis-router "$@"; }
wan() { ip netns exec tamis-wan "$@"; }

ip link add lan0 netns tamis-router type veth peer name eth0 netns tamis-lan
ip link add wan0 netns tamis-router type veth peer name eth0 netns tamis-wan
ip -n tamis-lan addr add 10.20.0.10/24 dev eth0
ip -n tamis-lan addr add 10.20.0.11/24 dev eth0
ip -n tamis-router addr add 10.20.0.1/24 dev lan0
ip -n tamis-router addr add 198.51.100.1/24 dev wan0
for host in 20 53 66 77; do ip -n tamis-wan addr add 198.51.100.$host/24 dev eth0; done
for end in "lan eth0" "router lan0" "router wan0" "wan eth0"; do
    # shellcheck disable=SC2086
    set -- $end
    ip -n tamis-"$1" link set "$2" up
    # Checksums and segments as they would be on a wire.
    ip netns exec tamis-"$1" ethtool -K "$2" tx off rx off gso off gro off tso off >/dev/null
done
ip -n tamis-lan route add default via 10.20.0.1
ip -n tamis-wan route add default via 198.51.100.1
router sysctl -qw net.ipv4.ip_forward=1

cd "$work"
# http.server by hand: run as a module it asks a name server about its own address first.
serve='import sys, http.server as h, socketserver as s
s.TCPServer.allow_reuse_address = True
s.TCPServer((sys.argv[1], int(sys.argv[2])), h.SimpleHTTPRequestHandler).serve_forever()'
head -c 20000 /dev/zero | tr '\0' x >index.html
wan python3 -c "$serve" 198.51.100.20 80 >/dev/null 2>&1 &
wan python3 -c "$serve" 198.51.100.66 80 >/dev/null 2>&1 &
wan dnsmasq --no-daemon --no-resolv --no-hosts --listen-address=198.51.100.53 --bind-interfaces \
    --address=/example.net/198.51.100.20 >/dev/null 2>&1 &
wan nc -l -k 198.51.100.20 5432 >/dev/null 2>&1 &
wan nc -l -k 198.51.100.20 25 >/dev/null 2>&1 &
lan python3 -c "$serve" 10.20.0.11 8080 >/dev/null 2>&1 &
lan nc -l -k 10.20.0.11 22 >/dev/null 2>&1 &
router tcpdump -q -n -i lan0 -U -w "$work/office.pcap" ip 2>/dev/null &
sleep 1

lan dig +short @198.51.100.53 www.example.net >/dev/null || true
for _ in 1 2 3; do lan curl -s http://198.51.100.20/ >/dev/null || true; done
lan ping -q -c 3 -i 0.2 198.51.100.20 >/dev/null || true
lan dig +short @198.51.100.53 mail.example.net >/dev/null || true
lan curl -s --max-time 2 http://198.51.100.66/index.html >/dev/null || true
printf 'EHLO office\r\n' | lan nc -w 1 198.51.100.20 25 >/dev/null || true
printf 'hello' | lan nc -w 1 198.51.100.20 5432 >/dev/null || true
printf 'hello' | lan nc -w 1 198.51.100.20 5432 >/dev/null || true
for port in 21 22 23 8080 8443; do wan nc -z -w 1 -s 198.51.100.77 10.20.0.11 $port || true; done
wan ping -q -c 2 -i 0.2 10.20.0.11 >/dev/null || true
wan curl -s --max-time 2 http://10.20.0.11:8080/ >/dev/null || true
lan curl -s http://198.51.100.20/ >/dev/null || true
lan ping -q -c 1 -t 1 198.51.100.20 >/dev/null || true
sleep 1
ip netns pids tamis-router | xargs kill -INT
sleep 0.5
cp "$work/office.pcap" "$out"
