"""Packets that are the same every time, captures of them, and rules for them.

Checksums are right. Addresses, ports and order are drawn by a seeded generator of our own, since Python's may change.
"""
import gzip
import struct

PORTS = (80, 443, 25, 53, 22, 5432, 8080, 6881, 123, 993)
SYN, ACK, PUSH, FIN = 2, 16, 8, 1


class Draws:
    """Numbers of 64 bits, by splitmix64."""

    def __init__(self):
        self.state = 1

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        z = self.state
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        return z ^ z >> 31


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def frame(protocol, source, destination, flags=0, seq=0, ack=0, data=b""):
    """An Ethernet frame; source and destination are (address, port), and data has an even length."""
    (saddr, sport), (daddr, dport) = source, destination
    if protocol == 6:
        upper = struct.pack(">HHIIBBHHH", sport, dport, seq, ack, 0x50, flags, 60000, 0, 0) + data
    else:
        upper = struct.pack(">HHHH", sport, dport, 8 + len(data), 0) + data
    total = checksum(struct.pack(">IIBBH", saddr, daddr, 0, protocol, len(upper)) + upper) or 0xFFFF
    at = 16 if protocol == 6 else 6
    upper = upper[:at] + struct.pack(">H", total) + upper[at + 2:]
    header = struct.pack(">BBHIBBHII", 0x45, 0, 20 + len(upper), 0, 64, protocol, 0, saddr, daddr)
    header = header[:10] + struct.pack(">H", checksum(header)) + header[12:]
    return b"\2\0\0\0\0\2\2\0\0\0\0\1\x08\0" + header + upper


def ends(draw, hosts):
    """A client of the inner network, and a server outside."""
    return ((0x0A140000 | draw & hosts, 1024 + (draw >> 24 & 0x7FFF)),
            (0xC6330000 | draw >> 8 & 0xFFFF, PORTS[(draw >> 40) % len(PORTS)]))


def singles(count):
    """Packets that have nothing to do with each other, in both directions."""
    draws = Draws()
    for _ in range(count):
        draw = draws.next()
        a, b = ends(draw, 0xFF)
        if draw >> 60 & 1:
            a, b = b, a
        flags = (SYN, ACK, ACK | PUSH, SYN | ACK)[draw >> 55 & 3]
        yield frame(6 if (draw >> 50) % 4 else 17, a, b, flags, data=bytes(6))


def conversation(draw):
    """From SYN to FIN with four questions and answers; one in four is UDP."""
    a, b = ends(draw, 0xFFF)
    if (draw >> 50) % 4 == 0:
        for _ in range(3):
            yield frame(17, a, b, data=bytes(30))
            yield frame(17, b, a, data=bytes(60))
        return
    x, y = draw & 0xFFFFFF, draw >> 20 & 0xFFFFFF
    yield frame(6, a, b, SYN, x)
    yield frame(6, b, a, SYN | ACK, y, x + 1)
    x, y = x + 1, y + 1
    yield frame(6, a, b, ACK, x, y)
    for _ in range(4):
        yield frame(6, a, b, ACK | PUSH, x, y, bytes(40))
        x += 40
        yield frame(6, b, a, ACK | PUSH, y, x, bytes(100))
        y += 100
    yield frame(6, a, b, FIN | ACK, x, y)
    yield frame(6, b, a, FIN | ACK, y, x + 1)
    yield frame(6, a, b, ACK, x + 1, y + 1)


def conversations(count, at_once=40):
    """Conversations from their beginning to their end, several at a time."""
    draws = Draws()
    live = [conversation(draws.next()) for _ in range(at_once)]
    for _ in range(count):
        turn = draws.next() % at_once
        packet = next(live[turn], None)
        if packet is None:
            live[turn] = conversation(draws.next())
            packet = next(live[turn])
        yield packet


def established(count, connections):
    """A packet of each of so many connections of UDP, then packets of them at random, in both directions."""
    draws = Draws()
    flows = [((0x0A140000 | n & 0xFFFF, 2000 + (n >> 16)), (0xC6330000 | n * 7 & 0xFFFF, 53)) for n in range(connections)]
    for a, b in flows:
        yield frame(17, a, b)
    for _ in range(count):
        draw = draws.next()
        a, b = flows[(draw >> 8) % connections]
        yield frame(17, a, b) if draw & 1 else frame(17, b, a)


def write(path, frames, micros=200):
    """Writes a capture of Ethernet, a packet each so many microseconds."""
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for n, data in enumerate(frames):
            at = n * micros
            out.write(struct.pack("<IIII", 1795255200 + at // 1000000, at % 1000000, len(data), len(data)) + data)


def repeat(recording, path, times, pause=600):
    """Writes a recording so many times, one after the other with a pause; returns the packets of all."""
    with gzip.open(recording) as given:
        text = given.read()
    records, at = [], 24
    while at < len(text):
        head = struct.unpack_from("<IIII", text, at)
        records.append((head, text[at + 16:at + 16 + head[2]]))
        at += 16 + head[2]
    lasts = records[-1][0][0] - records[0][0][0] + pause
    with open(path, "wb") as out:
        out.write(text[:24])
        for turn in range(times):
            for (seconds, *rest), data in records:
                out.write(struct.pack("<IIII", seconds + turn * lasts, *rest) + data)
    return len(records) * times


def rules(count, tracked):
    """Save text of so many rules; tracked with those that begin and continue connections."""
    lines = ["*filter", ":INPUT ACCEPT [0:0]", ":FORWARD DROP [0:0]", ":OUTPUT ACCEPT [0:0]"]
    if tracked:
        lines += ["-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"]
    for n in range(count // 2):
        lines += [f"-A FORWARD -s 10.{n * 4 % 256}.0.0/16 -p tcp -m tcp --dport {1000 + 4 * n} -j ACCEPT",
                  f"-A FORWARD -p udp -m udp --dport {1003 + 4 * n} -j ACCEPT"]
    if tracked:
        lines += ["-A FORWARD -s 10.20.0.0/16 -j ACCEPT"]
    return "\n".join(lines + ["COMMIT", ""])


def services(count):
    """A listing of nft as kube-proxy makes it: a verdict map of so many services, with two chains of two rules for each."""
    names = [(f"10.{96 + (n >> 16)}.{n >> 8 & 255}.{n & 255}", f"10.0.{n >> 8 & 255}.{n & 255}", f"{n:06d}") for n in range(count)]
    chain = "chain {} {{\n{}\n}}\n".format
    mark = "jump mark-for-masquerade"
    every = ",\n".join(f"{ip} . tcp . 80 : goto service-{n}" for ip, _, n in names)
    return "".join(chain(f"service-{n}", f"ip daddr {ip} tcp dport 80 ip saddr != 10.0.0.0/8 {mark}\n"
                         f"numgen random mod 1 vmap {{ 0 : goto endpoint-{n} }}")
                   + chain(f"endpoint-{n}", f"ip saddr {to} {mark}\nmeta l4proto tcp dnat to {to}:8080") for ip, to, n in names).join((
        f"table ip kube-proxy {{\nmap services {{\ntype ipv4_addr . inet_proto . inet_service : verdict\nelements = {{ {every} }}\n}}\n"
        + chain("mark-for-masquerade", "meta mark set meta mark | 0x00004000"),
        chain("prerouting", "type nat hook prerouting priority dstnat; policy accept;\n"
              "ip daddr . meta l4proto . th dport vmap @services") + "}\n"))
