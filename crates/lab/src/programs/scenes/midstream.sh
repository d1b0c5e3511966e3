# A capture that begins while connections stand: TCP, UDP and ping flows from before, and their counters since.
# needs: python3 curl ping dnsmasq dig socat
early_rules=1

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
    web s 80
    names s
    at s socat TCP-LISTEN:1001,fork,reuseaddr EXEC:cat &
    at s socat UDP-LISTEN:1002,fork,reuseaddr EXEC:cat &
    at r socat TCP-LISTEN:1003,fork,reuseaddr EXEC:cat &
    listens s 80
    listens s 53 udp
    listens s 1001
    listens s 1002 udp
    listens r 1003
}

rules() {
    legacy_rules <<'R'
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
-A INPUT -m conntrack --ctstate INVALID -j DROP
-A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT
-A INPUT -i lan0 -m conntrack --ctstate NEW -j ACCEPT
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -m conntrack --ctstate RELATED -j ACCEPT
-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT
-A FORWARD -i lan0 -m conntrack --ctstate NEW -j ACCEPT
-A OUTPUT -m conntrack --ctstate NEW
-A OUTPUT -m conntrack --ctstate ESTABLISHED
COMMIT
R
}

# Flows that say a line, fall silent while the captures start, and go on when the file appears.
flow() {
    at c $python - "$@" 2>>$lab/flow.err <<'P' &
import os, socket, sys, time
kind, host, port, lines = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
s.settimeout(1)
s.connect((host, port))
for turn in range(lines):
    s.send(b"before"); s.recv(100)
open("/run/lab/flowing", "a").write("x")
while not os.path.exists("/run/lab/go"): time.sleep(0.01)
for turn in range(5):
    s.send(b"after"); s.recv(100); time.sleep(0.02)
s.close()
P
}

before() {
    flow tcp 192.0.2.80 1001 3
    flow tcp 192.0.2.80 1001 0
    flow udp 192.0.2.80 1002 3
    flow udp 192.0.2.80 1002 1
    flow tcp 10.1.0.1 1003 2
    look_up c 192.0.2.80
    echoes c 192.0.2.80 2 -e 77
    get c http://192.0.2.80/small
    local turn
    for turn in $(seq 100); do
        [ "$(cat $lab/flowing 2>/dev/null)" = xxxxx ] && break
        sleep 0.05
    done
    sleep 0.2
}

traffic() {
    touch $lab/go
    get c http://192.0.2.80/small
    echoes c 192.0.2.80 2 -e 77
    echoes c 192.0.2.80 2 -e 78
    look_up c 192.0.2.80
    sleep 0.5
    get c http://192.0.2.80/big
}
