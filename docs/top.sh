#!/bin/sh
# Draws the picture of `tamis top`: TAMIS OUT. Needs root and python3: traffic of made-up hosts crosses the network
# namespaces of examples/live/hosts.sh, under rules of its own.
set -e
tamis=$(realpath "$1")
out=$(realpath "$2")
hosts=$(realpath "$(dirname "$0")/../examples/live/hosts.sh")
folder=$(mktemp -d)
end() {
    kill $traffic $answers $run 2>/dev/null || true
    wait
    "$hosts" down
    rm -r "$folder"
}
"$hosts" up
trap end EXIT
cd "$folder"
cat > live.toml <<'CONFIG'
[[port]]
name = "lan"
kind = "af_packet"
device = "lan"
[[port]]
name = "wan"
kind = "af_packet"
device = "wan"
[[wire]]
ports = ["lan", "wan"]
[rules]
ip = "rules.v4"
[workers]
count = 2
[control]
socket = "control.sock"
CONFIG
cat > rules.v4 <<'RULES'
*filter
:FORWARD DROP [0:0]
:services - [0:0]
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -s 10.9.0.66/32 -m comment --comment "infected, ticket 4711" -j DROP
-A FORWARD -i lan -p tcp -m tcp --dport 25 -j REJECT --reject-with icmp-admin-prohibited
-A FORWARD -i lan -j services
-A services -p tcp -m multiport --dports 80,443 -j ACCEPT
-A services -p udp -m multiport --dports 53,123,443 -j ACCEPT
COMMIT
RULES
cat > traffic.py <<'TRAFFIC'
"""Frames of ten hosts to one, 6,000 a second, until it is ended: traffic.py MAC."""
import random, socket, struct, sys, time

def checksum(data):
    total = sum(struct.unpack("!%dH" % (len(data + len(data) % 2 * b"\0") // 2), data + len(data) % 2 * b"\0"))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF

def frame(source, protocol, port, size):
    ends = socket.inet_aton(source) + socket.inet_aton("10.9.0.2")
    if protocol == 17:
        upper = struct.pack("!HHHH", 40000 + random.randrange(50), port, 8 + size, 0) + bytes(size)
    else:
        upper = struct.pack("!HHIIBBHHH", random.randrange(32768, 61000), port, 1, 0, 0x50, 2, 8192, 0, 0)
        pseudo = ends + struct.pack("!BBH", 0, 6, len(upper))
        upper = upper[:16] + struct.pack("!H", checksum(pseudo + upper)) + upper[18:]
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(upper), 1, 0, 64, protocol, 0) + ends
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    return bytes.fromhex(sys.argv[1].replace(":", "")) + b"\2\0\0\0\0\1\x08\0" + ip + upper

random.seed(1)
hosts = ["10.9.0.%d" % host for host in (7, 8, 12, 23, 40, 41, 42, 66, 99)]
services = [(6, 443, 0), (17, 443, 1100), (17, 53, 40), (6, 25, 0), (6, 3389, 0), (17, 5353, 60)]
frames = []
for _ in range(3000):
    host = random.choices(hosts, [30, 18, 12, 9, 8, 4, 3, 12, 4])[0]
    frames.append(frame(host, *random.choices(services, [30, 40, 12, 5, 4, 3])[0]))
port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
port.bind(("eth0", 0))
start, sent = time.time(), 0
while True:
    for _ in range(20):
        port.send(random.choice(frames))
    sent += 20
    time.sleep(max(0, start + sent / 6000 - time.time()))
TRAFFIC
cat > answers.py <<'ANSWERS'
import socket
port = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
port.bind(("", 443))
while True:
    _, sender = port.recvfrom(2000)
    port.sendto(bytes(200), sender)
ANSWERS
for host in 7 8 12 23 40 41 42 66 99; do
    ip -n tamis-b neigh replace "10.9.0.$host" lladdr 02:00:00:00:00:01 dev eth0
done
ip netns exec tamis-fw "$tamis" run live.toml > /dev/null 2>&1 & run=$!
ip netns exec tamis-b python3 answers.py & answers=$!
sleep 1
ip netns exec tamis-a python3 traffic.py "$(ip netns exec tamis-b cat /sys/class/net/eth0/address)" & traffic=$!
sleep 5
"$tamis" top --socket control.sock --once --svg > "$out"
"$tamis" ctl --socket control.sock stop > /dev/null
