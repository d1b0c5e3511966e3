"""Whether time is linear in what is given: instructions at sizes n, 2n and 4n of readers, and of what asks rules without packets.

The second step is twice the first where time is linear, a little more where things are sorted, and four times where each
thing is held to each. A row is measured by the difference, so starting up does not count.
"""
import base64
import json
import os
import struct
import tempfile
from concurrent.futures import ThreadPoolExecutor

import packets
import rows

# The most that the second step may be of the first.
MOST = 2.45

HEAD = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\n:OUTPUT ACCEPT [0:0]\n"
ASK = "tcp 10.20.0.1:1025 > 198.51.100.2:80 syn"
WAY = ["--path", "forward", "--in", "a", "--out", "b"]


def ip(number, first=10):
    return f"{first}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def save(count, line, head=HEAD):
    """Save text of so many times some lines."""
    return head + "".join(line(n) + "\n" for n in range(count)) + "COMMIT\n"


def accepts(n):
    return f"-A FORWARD -s {ip(n)}/32 -p tcp -m tcp --dport {n % 60000 + 1} -j ACCEPT"


def drops(n):
    return accepts(n).replace("ACCEPT", "DROP")


def interfaces(n):
    return f"-A FORWARD -i eth{n} -j ACCEPT"


def shadowed(count):
    return save(count, drops, HEAD + "-A FORWARD -s 10.0.0.0/8 -j ACCEPT\n")


def unreachable(count):
    return save(count, lambda n: ("-A FORWARD -j REJECT\n" if n == count // 2 else "") + accepts(n))


def unused(count):
    return save(count, accepts, HEAD + "".join(f":C{n} - [0:0]\n" for n in range(count)))


def published(count):
    """What INPUT denies, sent elsewhere by nat and accepted there."""
    denies = save(count, lambda n: f"-A INPUT -p tcp -m tcp --dport {n + 1} -j DROP", HEAD + "-A FORWARD -j ACCEPT\n")
    sends = lambda n: f"-A PREROUTING -p tcp -m tcp --dport {n + 1} -j DNAT --to-destination {ip(n)}:80"
    return denies + save(count, sends, "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n")


def chains(count, changed=lambda n: False):
    """Chains that lead to one another in pairs, so that none is deep."""
    head = HEAD + "".join(f":C{n} - [0:0]\n" for n in range(count))
    lead = lambda n: f"-A FORWARD -s {ip(n)}/32 -j C{n}" if n % 2 == 0 else f"-A C{n - 1} -j C{n}"
    ends = lambda n: f"-A C{n} -p tcp -m tcp --dport {n % 60000 + 1} -j {'DROP' if changed(n) else 'ACCEPT'}"
    return save(count, lambda n: lead(n) + "\n" + ends(n), head)


def lint(text):
    def run(folder, count):
        (folder / "rules").write_text(text(count))
        return ["lint", folder / "rules"]
    return run


def diff(changed):
    def run(folder, count):
        (folder / "old").write_text(chains(count))
        (folder / "new").write_text(chains(count, changed))
        return ["diff", folder / "old", folder / "new"]
    return run


def convert(to):
    def run(folder, count):
        (folder / "rules").write_text(save(count, accepts))
        return ["convert", folder / "rules", "--to", to]
    return run


def reach(folder, count):
    (folder / "rules").write_text(published(count))
    return ["reach", folder / "rules", "--to", "10.0.0.1:80"]


def test(folder, count):
    (folder / "rules").write_text(packets.rules(20, False))
    case = '[[case]]\nname = "{}"\npacket = "{}"\nexpect = "drop"\n'
    usual = '[defaults]\nin = "a"\nout = "b"\n'
    (folder / "cases.toml").write_text(usual + "".join(case.format(n, ASK) for n in range(count)))
    return ["test", folder / "rules", folder / "cases.toml"]


def host(name, line, rules=None):
    """A question on a host with a file of so many lines, or of a text by their number."""
    def run(folder, count):
        files = {"iptables.save": rules or save(1, accepts), "routes.txt": "default via 192.0.2.1 dev eth0\n",
                 "links.txt": link(0), "addresses.txt": "1: eth0    inet 192.0.2.7/24 scope global eth0\n"}
        text = "".join(line(n) for n in range(count))
        files[name] = files.get(name, "") + text if name != "nft.json" else listing(count)
        for file, text in files.items():
            (folder / file).write_text(text)
        return ["why", folder, "--packet", f"in=eth0 {ASK}"]
    return run


def link(n):
    return f"{n + 2}: eth{n}: <BROADCAST,UP,LOWER_UP> mtu 1500 qdisc fq state UP mode DEFAULT group default qlen 1000" \
        "\\    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n"


def flow(n):
    return f"udp      17 20 src={ip(n)} dst=198.51.100.2 sport={n % 60000 + 1} dport=53 src=198.51.100.2 dst={ip(n)} " \
        f"sport=53 dport={n % 60000 + 1} mark=0 use=1\n"


def listing(count):
    """`nft -j list ruleset` of rules that nobody evaluates."""
    meta = {"metainfo": {"version": "1.0.6", "release_name": "x", "json_schema_version": 1}}
    table = {"table": {"family": "inet", "name": "t", "handle": 1}}
    base = {"family": "inet", "table": "t", "name": "c", "handle": 1, "type": "filter", "hook": "input", "prio": 0, "policy": "accept"}
    tests = lambda n: {"match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": n}}
    rule = lambda n: {"rule": {"family": "inet", "table": "t", "chain": "c", "handle": n + 2, "expr": [tests(n % 60000), {"drop": None}]}}
    return json.dumps({"nftables": [meta, table, {"chain": base}, *(rule(n) for n in range(count))]})


def sets(folder, count):
    (folder / "rules").write_text(HEAD + "-A FORWARD -m set --match-set s src -j DROP\nCOMMIT\n")
    adds = "".join(f"add s {ip(n)}\n" for n in range(count))
    (folder / "sets").write_text("create s hash:ip family inet hashsize 1024 maxelem 1000000\n" + adds)
    return ["why", folder / "rules", *WAY, "--ipset", folder / "sets", "--packet", ASK]


def policy(folder, count):
    """Policy rules by source, each with a table of its own."""
    (folder / "iptables.save").write_text(save(1, accepts))
    (folder / "routes.txt").write_text(
        "default via 192.0.2.1 dev eth0\n" + "".join(f"default via 192.0.2.1 dev eth0 table {n + 1000}\n" for n in range(count)))
    usual = "0:\tfrom all lookup local\n", "32766:\tfrom all lookup main\n32767:\tfrom all lookup default\n"
    (folder / "rule.txt").write_text(usual[0] + "".join(f"{n + 1}:\tfrom {ip(n)} lookup {n + 1000}\n" for n in range(count)) + usual[1])
    (folder / "links.txt").write_text(link(0))
    return ["why", folder, "--packet", f"in=eth0 {ASK}"]


def unknown(folder, count):
    """What a verdict depends on."""
    asks = lambda n: f"-A FORWARD -m string --algo bm --string word{n} -j DROP"
    (folder / "rules").write_text(save(count, asks))
    return ["why", folder / "rules", *WAY, "--packet", ASK]


def log(folder, count):
    (folder / "rules").write_text(save(1, accepts))
    line = "kernel: IN=a OUT=b SRC={} DST=198.51.100.2 LEN=60 TOS=0x00 PREC=0x00 TTL=63 ID=1 DF PROTO=TCP SPT=1025 DPT=80 WINDOW=1 SYN"
    (folder / "log").write_text("".join(line.format(ip(n)) + "\n" for n in range(count)))
    return ["why", folder / "rules", "--path", "forward"], (folder / "log").read_text()


def capture(folder, count):
    (folder / "rules").write_text(save(1, accepts))
    packets.write(folder / "a.pcap", packets.singles(count))
    return ["replay", folder / "rules", folder / "a.pcap", *WAY]


def tunnel(folder, count):
    """Peers of a tunnel's file, each with a place in it."""
    key = lambda number: base64.b64encode(struct.pack(">IIQ16x", number, 0, 1)).decode()
    (folder / "key").touch(0o600)
    (folder / "key").write_text(key(1 << 30))
    peer = '[[peer]]\nkey = "{}"\nname = "p{}"\nallowed = ["{}/32"]\n'
    (folder / "end.toml").write_text('[tunnel]\nkey = "key"\n' + "".join(peer.format(key(n + 1), n, ip(n)) for n in range(count)))
    ports = '[[port]]\nname = "a"\nkind = "loopback"\n[[port]]\nname = "b"\nkind = "tunnel"\nfile = "end.toml"\n'
    (folder / "run.toml").write_text(ports + '[[wire]]\nports = ["a", "b"]\n[rules]\nip = "rules"\n[privileges]\ndrop = "off"\n')
    (folder / "rules").write_text(save(1, accepts))
    return ["run", folder / "run.toml", "--check"]


# What is run, and the size that it begins with.
ROWS = {
    "convert.iptables": (convert("iptables"), 2000),
    "convert.json": (convert("json"), 1000),
    "lint": (lint(lambda count: save(count, accepts)), 1000),
    "lint.shadowed": (lint(shadowed), 120),
    "lint.redundant": (lint(lambda count: save(count, drops)), 500),
    "lint.unreachable": (lint(unreachable), 250),
    "lint.unused": (lint(unused), 1000),
    "lint.interfaces": (lint(lambda count: save(count, interfaces)), 1000),
    "lint.published": (lint(published), 100),
    "diff": (diff(lambda n: n == 7), 500),
    "diff.all": (diff(lambda n: True), 250),
    "reach": (reach, 50),
    "test": (test, 500),
    "routes": (host("routes.txt", lambda n: f"{ip(n)} via 192.0.2.1 dev eth0\n"), 4000),
    "links": (host("links.txt", lambda n: link(n + 1)), 2000),
    "addresses": (host("addresses.txt", lambda n: f"1: eth0    inet {ip(n)}/32 scope global secondary eth0\n"), 2000),
    "neighbours": (host("neigh.txt", lambda n: f"{ip(n)} dev eth0 lladdr 02:00:00:00:00:02 REACHABLE\n"), 4000),
    "conntrack": (host("conntrack.txt", flow), 2000),
    "nft": (host("nft.json", lambda n: ""), 4000),
    "policy": (policy, 2000),
    "ipset": (sets, 4000),
    "why.unknown": (unknown, 1000),
    "log": (log, 500),
    "capture": (capture, 8000),
    "tunnel": (tunnel, 500),
}

# Faster than callgrind, and says nothing of functions. Verdicts and findings are exit codes of their own.
TOOL = ("cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
ENDS = (0, 1, 3, 4)


def measured(folder):
    """Each row with how much more the second step takes than the first."""
    def one(job):
        name, size = job
        with tempfile.TemporaryDirectory(dir=folder) as own:
            command, given = ROWS[name][0](type(folder)(own), size), None
            if isinstance(command, tuple):
                command, given = command
            return rows.count(rows.Run(size, rows.TAMIS, *command, given=given), TOOL, ENDS)
    jobs = [(name, times * size) for name, (_, size) in ROWS.items() for times in (1, 2, 4)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = dict(zip(jobs, pool.map(one, jobs)))
    for name, (_, size) in ROWS.items():
        first, second, fourth = (done[name, times * size] for times in (1, 2, 4))
        # Where what may be done at most is done already, steps are as good as none.
        yield name, (fourth - second) / max(second - first, first / 8)
