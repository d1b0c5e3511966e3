# Packets that leave the walk: NFQUEUE with a program that accepts late, drops and changes the payload, a group without
# a program but bypassed; TEE of both directions to a monitor; superframes through the queue.
# needs: nginx curl ping python3 socat
# one: lan0
# inbound: what the program changed shows on the way out.

setup() {
    ns c m r s
    host c lan0 10.1.0.10/24 10.1.0.1
    host m mon0 10.7.0.2/24 10.7.0.1
    host s wan0 192.0.2.80/24 192.0.2.1
    forwarding r
    at r ip neigh replace 10.7.0.2 dev mon0 lladdr "$(at m cat /sys/class/net/eth0/address)" nud permanent
    web s 80 81
    web r 90
    echoing s 1001
    echoing s 1002
    listens s 81
    listens r 90
    program 1 & program 2 & program 3 &
    sleep 0.5
}

# A program at the queue of this number: 1 accepts after 1 ms; 2 drops `evil` and makes `aaaa` `bbbb`; 3 accepts at once.
program() {
    at r $python - "$1" 2>>$lab/queue.err <<'P'
import socket, struct, sys, time
number = int(sys.argv[1])
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
s.bind((0, 0))
def attribute(kind, value):
    return struct.pack("HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)
def tell(kind, *attributes):
    body = struct.pack(">BBH", 0, 0, number) + b"".join(attributes)
    s.send(struct.pack("IHHII", 16 + len(body), 3 << 8 | kind, 1, 0, 0) + body)
tell(2, attribute(1, struct.pack(">BBH", 1, 0, 0)))
tell(2, attribute(2, struct.pack(">IB", 65535, 2)))
def attributes(data):
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("HH", data, at)
        yield kind & 0x7fff, data[at + 4:at + length]
        at += length + 3 & ~3
def summed(packet):
    head = packet[0] % 16 * 4
    if packet[9] != 17: return packet
    return packet[:head + 6] + b"\0\0" + packet[head + 8:]
while True:
    data = s.recv(70000)
    if struct.unpack_from("H", data, 4)[0] != 3 << 8: continue
    told = dict(attributes(data[20:]))
    name, packet = told[1][:4], told[10]
    if number == 1: time.sleep(0.001)
    if number != 2: tell(1, attribute(2, struct.pack(">I", 1) + name)); continue
    verdict = attribute(2, struct.pack(">I", b"evil" not in packet) + name)
    if b"aaaa" in packet: tell(1, verdict, attribute(10, summed(packet.replace(b"aaaa", b"bbbb"))))
    else: tell(1, verdict)
P
}

rules() {
    legacy_rules <<'R'
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -i lan0 -p icmp -j TEE --gateway 10.7.0.2
-A PREROUTING -i lan0 -p udp -m udp --dport 1002 -j TEE --gateway 10.7.0.2
-A POSTROUTING -o lan0 -p icmp -j TEE --gateway 10.7.0.2
-A POSTROUTING -o lan0 -p tcp -m tcp --sport 81 -j TEE --gateway 10.7.0.2
-A OUTPUT -o mon0
-A POSTROUTING -o mon0
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
-A INPUT -i lan0 -p tcp -m tcp --dport 90 -j NFQUEUE --queue-num 3
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -p icmp -j ACCEPT
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -p udp -m udp --dport 1001 -j NFQUEUE --queue-num 2
-A FORWARD -p tcp -m tcp --dport 1001 -j NFQUEUE --queue-num 9 --queue-bypass
-A FORWARD -p tcp -m tcp --dport 80 -j NFQUEUE --queue-num 1
-A FORWARD -p tcp -m tcp --sport 80 -j NFQUEUE --queue-num 3
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -i lan0 -j ACCEPT
-A OUTPUT -p udp -m udp --dport 1001 -j NFQUEUE --queue-num 2
-A OUTPUT -o wan0
-A OUTPUT -p icmp -m conntrack --ctstate RELATED
COMMIT
R
}

say() { echo "$3" | at "$1" socat -T 0.2 - "UDP:192.0.2.80:$2"; }

traffic() {
    get c http://192.0.2.80/small
    get c http://192.0.2.80/big
    get c http://192.0.2.80:81/small
    get c http://10.1.0.1:90/small
    say c 1001 hello
    say c 1001 evil
    say c 1001 aaaa
    say r 1001 hello
    say r 1001 evil
    say r 1001 aaaa
    say c 1002 copied
    echoes c 192.0.2.80 2
    echoes c 10.1.0.1 2
    echoes r 192.0.2.80 2
    flow c tcp 192.0.2.80 1001 2
    flow c udp 192.0.2.80 1001 2
    flow c udp 192.0.2.80 1002 2
    flowing
}

again() {
    go
    get c -T $lab/www/big -X POST http://192.0.2.80/big
    get c http://192.0.2.80:81/big
    get r http://192.0.2.80/small
    say c 1001 evil
    say c 1001 "again aaaa"
    say r 1001 aaaa
    echoes c 192.0.2.80 2
    sleep 0.3
}
