"""What is measured, row by row; the names are those of the table of ceilings.

Instructions are the difference between a long and a short run, so starting up does not count. valgrind shows every
program the same processor, so neither this machine's nor its load matters to them.
"""
import base64
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, repeat

import packets

TAMIS, SEALS = "target/release/tamis", "target/release/tamis-costs"
SCENES = "crates/lab/fixtures/programs"
FORWARD = ["--path", "forward", "--in", "a", "--out", "b"]


class Run:
    """A command to be counted, for so many packets."""

    def __init__(self, count, *command, given=None):
        self.count, self.command, self.given = count, [str(word) for word in command], given


def replay(rules, frames, *options, micros=200):
    """A replay of a capture of so many frames, by so many rules; fewer than none: that track connections."""
    def run(folder, count):
        (folder / "rules").write_text(packets.rules(abs(rules), rules < 0))
        packets.write(folder / "a.pcap", frames(count), micros)
        return Run(count, TAMIS, "replay", folder / "rules", folder / "a.pcap", *FORWARD, *options)
    return run


def connections(held):
    return replay(-20, lambda count: packets.established(count, held), "--ct", "kernel", micros=10)


def scene(name):
    """A recording of the lab, so many times, on its host."""
    def run(folder, times):
        count = packets.repeat(f"{SCENES}/{name}/any.pcap.gz", folder / "a.pcap", times)
        return Run(count, TAMIS, "replay", f"{SCENES}/{name}/host", folder / "a.pcap")
    return run


def why(folder, count):
    (folder / "rules").write_text(packets.rules(20, False))
    ask = "in=a out=b tcp 10.20.0.{}:1025 > 198.51.100.2:80 syn\n"
    lines = "".join(ask.format(n % 250 + 1) for n in range(count))
    return Run(count, TAMIS, "why", folder / "rules", "--path", "forward", given=lines)


def wire(folder, count):
    """A run whose one port is a capture; what passes 20 rules is written."""
    (folder / "rules").write_text(packets.rules(20, False).replace("FORWARD DROP", "FORWARD ACCEPT"))
    packets.write(folder / "a.pcap", packets.singles(count))
    (folder / "run.toml").write_text(
        '[[port]]\nname = "a"\nkind = "pcap"\nfile = "a.pcap"\n[[port]]\nname = "b"\nkind = "pcap"\nout = "/dev/null"\n'
        '[[wire]]\nports = ["a", "b"]\n[rules]\nip = "rules"\n[privileges]\ndrop = "off"\n')
    return Run(count, TAMIS, "run", folder / "run.toml")


def seals(what):
    return lambda _, count: Run(count, SEALS, what, count)


# How each is run, the shorter and the longer time.
INSTRUCTIONS = {
    "replay.reader": (replay(20, packets.singles, "--from", "+1000000"), 6000, 60000),
    "replay.20_rules": (replay(20, packets.singles), 6000, 60000),
    "replay.100_rules": (replay(100, packets.singles), 6000, 60000),
    "replay.6000_rules": (replay(6000, packets.singles), 6000, 60000),
    "replay.conversations": (replay(-20, packets.conversations, "--ct", "kernel"), 6000, 60000),
    "replay.midstream": (replay(-20, packets.singles), 6000, 60000),
    "replay.1000_connections": (connections(1000), 6000, 60000),
    "replay.262144_connections": (connections(262144), 0, 30000),
    "replay.nat": (scene("homenat"), 4, 104),
    "replay.bridge": (scene("bridge"), 4, 204),
    "why": (why, 100, 1100),
    "wire.20_rules": (wire, 6000, 60000),
    "tunnel.seal": (seals("seal"), 2000, 22000),
    "tunnel.seal_open": (seals("open"), 2000, 22000),
}


def count(run, tool=("callgrind", "--callgrind-out-file=/dev/null"), ends_with=(0,)):
    """The instructions of a command."""
    valgrind = ["valgrind", f"--tool={tool[0]}", *tool[1:]]
    # Told so, a run does not start itself again without huge pages, where valgrind would not follow.
    told = {**os.environ, "MIMALLOC_ALLOW_THP": "0"}
    done = subprocess.run(valgrind + run.command, input=run.given, capture_output=True, text=True, env=told)
    refs = re.search(r"refs:\s+([\d,]+)", done.stderr)
    if not refs or (done.returncode not in ends_with and run.given is None):
        sys.exit(f"costs: {' '.join(run.command)}: no count: {done.stderr.strip()[-400:]}")
    return int(refs[1].replace(",", ""))


def instructions(folder):
    """Instructions a packet, row by row."""
    def one(job):
        name, size = job
        with tempfile.TemporaryDirectory(dir=folder) as own:
            run = INSTRUCTIONS[name][0](type(folder)(own), size)
            return run.count, count(run)
    jobs = [(name, size) for name, (_, *sizes) in INSTRUCTIONS.items() for size in sizes]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = dict(zip(jobs, pool.map(one, jobs)))
    for name, (_, short, long) in INSTRUCTIONS.items():
        (few, less), (many, more) = done[name, short], done[name, long]
        yield name, (more - less) / (many - few)


def peak(command):
    """The most memory that a command had, in kB. A small process starts it, since its own memory counts, too."""
    ask = "import os, sys; p = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ); print(os.wait4(p, 0)[2].ru_maxrss)"
    done = subprocess.run([sys.executable, "-S", "-c", ask, *command], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])


def resident(process):
    """The memory that a process has now, in kB."""
    with open(f"/proc/{process.pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])


def memory(folder):
    """Resident memory, in kB."""
    (folder / "rules").write_text(packets.rules(20, True))
    frames = list(packets.conversations(50000))
    packets.write(folder / "a.pcap", chain.from_iterable(repeat(frames, 20)))
    page = [TAMIS, "replay", str(folder / "rules"), str(folder / "a.pcap"), *FORWARD, "--html", str(folder / "page")]
    yield "memory.html", peak(page)
    (folder / "services").write_text(packets.services(44000))
    packets.write(folder / "one.pcap", packets.singles(1))
    yield "memory.services", peak([TAMIS, "replay", str(folder / "services"), str(folder / "one.pcap")])
    (folder / "rules").write_text(packets.rules(1000, True))
    yield "memory.run", least(folder, [("a", 'kind = "loopback"'), ("b", 'kind = "loopback"')])
    if os.geteuid() == 0:
        key = lambda number: base64.b64encode(bytes([number] * 32)).decode()
        (folder / "key").touch(0o600)
        (folder / "key").write_text(key(64))
        peer = '[[peer]]\nkey = "{}"\nallowed = ["10.77.0.{}/32"]\n'
        (folder / "end.toml").write_text('[tunnel]\nkey = "key"\n' + "".join(peer.format(key(n), n) for n in range(1, 11)))
        ports = [("a", 'kind = "tun"\ndevice = "a"'), ("b", 'kind = "tunnel"\nfile = "end.toml"')]
        yield "memory.tunnel", least(folder, ports, "unshare", "--net")


def least(*run):
    """The least memory of five runs, in kB: how many pages of the program's file are mapped differs by 2 % from run to run."""
    return min(idle(*run) for _ in range(5))


def idle(folder, ports, *within):
    """The memory of a run that has nothing to do, in kB."""
    ports = "".join(f'[[port]]\nname = "{name}"\n{kind}\n' for name, kind in ports)
    (folder / "run.toml").write_text(
        f'{ports}[[wire]]\nports = ["a", "b"]\n[rules]\nip = "rules"\n[privileges]\ndrop = "off"\n')
    command = [*within, TAMIS, "run", str(folder / "run.toml")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        said = []
        for line in process.stderr:
            said.append(line)
            if line.strip() == "ready":
                found = resident(process)
                process.terminate()
                return found
    sys.exit(f"costs: {' '.join(command)}: it does not become ready: {''.join(said)[-400:]}")


def sizes(folder):
    """The size of the stripped program, and how many crates each program links."""
    stripped = folder / "stripped"
    subprocess.run(["strip", "-o", stripped, TAMIS], check=True)
    yield "size.tamis", stripped.stat().st_size
    for package in ("tamis", "tamis-java", "tamis-lab"):
        tree = subprocess.run(["cargo", "tree", "-q", "-p", package, "-e", "normal,no-proc-macro", "--prefix", "none",
                               "--format", "{p}"], capture_output=True, text=True, check=True)
        yield f"crates.{package}", len({line.removesuffix(" (*)") for line in tree.stdout.splitlines()})
