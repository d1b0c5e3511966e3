# A transparent web proxy: TPROXY hands connections to a program of the router, -m socket keeps their packets with it.
# needs: python3 curl ping
# inbound: the proxy's own connections are the router's.
# hidden: 30: which sockets the router has, and so what is for its proxy.

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
    ip -n r rule add fwmark 0x1/0x1 lookup 100 pref 100
    ip -n r route add local default dev lo table 100
    forwarding r
    web s 80 81
    listens s 80
    cat >$lab/proxy.py <<'P'
import socket, threading

def carry(source, sink):
    while data := source.recv(65536):
        sink.sendall(data)
    sink.shutdown(socket.SHUT_WR)

def serve(client):
    # Where the client wanted to go is the address that the socket has.
    server = socket.create_connection(client.getsockname())
    threading.Thread(target=carry, args=(client, server), daemon=True).start()
    carry(server, client)

listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.setsockopt(socket.SOL_IP, 19, 1)  # IP_TRANSPARENT
listener.bind(("0.0.0.0", 3129))
listener.listen(64)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
P
    at r $python $lab/proxy.py 2>$lab/proxy.err &
    listens r 3129
}

rules() {
    legacy_rules <<'R'
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:DIVERT - [0:0]
-A PREROUTING -i lan0 -p tcp -m socket --transparent -j DIVERT
-A PREROUTING -i lan0 -p tcp -m tcp --dport 80 -j TPROXY --on-port 3129 --on-ip 0.0.0.0 --tproxy-mark 0x1/0x1
-A DIVERT -j MARK --set-xmark 0x1/0x1
-A DIVERT -j ACCEPT
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -i wan0 -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
-A INPUT -i lan0 -m mark --mark 0x1/0x1 -j ACCEPT
-A INPUT -i lan0 -p icmp -j ACCEPT
-A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
-A FORWARD -i lan0 -o wan0 -p tcp -m tcp --dport 80
-A FORWARD -i lan0 -o wan0 -j ACCEPT
-A OUTPUT -o lan0 -p tcp -m tcp --sport 80
-A OUTPUT -o wan0 -p tcp -m tcp --dport 80
COMMIT
R
}

traffic() {
    get c http://192.0.2.80/small http://192.0.2.80/small
    get c http://192.0.2.80/big
    (get c http://192.0.2.80/small & get c http://192.0.2.80/small & wait)
    get c http://192.0.2.80:81/small
    echoes c 10.1.0.1 2
    echoes c 192.0.2.80 2
    knock c 10.1.0.1 22
}
