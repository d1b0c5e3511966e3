//! Two workers at one wire that keeps the order of all frames: what passes by `run_to_completion` passes, too, by each
//! kind of device; a flood of many flows arrives in the order in which it was sent; rules are read again, devices go
//! and come back, and the run ends, all under traffic.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use super::talk::talk;
use super::{Cable, Hosts, RIGHT, RIGHT_V6, dropped, hits};
use crate::devices::{comes_true, goes_and_comes_back, stage};
use crate::ran::{Scratch, tamis};

/// What the configuration says of it.
pub(super) const WIRE: &str = "[[wire]]\nports = [\"left\", \"right\"]\nscheme = \"ordered\"\n\
    [workers]\ncount = 2\n";

#[test]
fn hosts_talk_by_packet_sockets_in_order() {
    talk("ordered-on", Cable::Veth { offloads: true }, WIRE);
}

#[test]
fn hosts_talk_by_packet_sockets_without_offloads_in_order() {
    talk("ordered-off", Cable::Veth { offloads: false }, WIRE);
}

#[test]
fn hosts_talk_by_af_xdp_in_order() {
    talk("ordered-xdp", Cable::Xdp, WIRE);
}

#[test]
fn hosts_talk_by_tun_devices_in_order() {
    talk("ordered-tun", Cable::Tun, WIRE);
}

/// A burst is any worker's.
const STATELESS: &str = "*filter\n:FORWARD DROP [0:0]\n\
    -A FORWARD -p udp -m string --string nowhere --algo bm -j DROP\n\
    -A FORWARD -p udp -m udp --dport 9 -j ACCEPT\nCOMMIT\n";
/// A burst has a part for each worker.
const STATEFUL: &str = "*filter\n:FORWARD DROP [0:0]\n\
    -A FORWARD -m conntrack --ctstate INVALID -j DROP\n\
    -A FORWARD -p udp -m string --string nowhere --algo bm -j DROP\n\
    -A FORWARD -p udp -m udp --dport 9 -j ACCEPT\nCOMMIT\n";
const ACCEPT: &str = "-A FORWARD -p udp -m udp --dport 9 -j ACCEPT";
const RULES_V6: &str = "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n";
const FRAMES: u64 = 20_000;

/// `send DEVICE FRAMES`: numbered datagrams of 64 flows, short and long ones in turn; `end DEVICE`: one without a number.
/// `come DEVICE`: reads until the one without a number, and prints how many came, how many of those came after one with a
/// higher number, and how many the reader lost.
const FLOOD: &str = r#"
import random, socket, struct, sys, time
END = 0xffffffff

def frame(flow, number, room):
    payload = struct.pack('!I', number) + b'x' * room
    source = bytes([10, 9, 1 + flow, 1])
    udp = struct.pack('!4H', 4000, 9, 8 + len(payload), 0)
    head = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 28 + len(payload), 1, 0, 64, 17, 0, source, b'\x0a\x09\0\2')
    total = sum(struct.unpack('!10H', head))
    total = (total & 0xffff) + (total >> 16)
    head = head[:10] + struct.pack('!H', ~total & 0xffff) + head[12:]
    return b'\2\0\0\0\0\x99' + b'\2\0\0\0\0\1' + b'\x08\0' + head + udp + payload

way, device = sys.argv[1:3]
if way == 'come':
    come = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(0x800))
    come.setsockopt(socket.SOL_SOCKET, 33, 1 << 27)  # SO_RCVBUFFORCE
    come.bind((device, 0x800))
    print('listening', flush=True)
    last, count, late = -1, 0, 0
    while True:
        data = come.recv(2048)
        if data[23] != 17 or data[36:38] != b'\0\x09':
            continue
        number = struct.unpack('!I', data[42:46])[0]
        if number == END:
            break
        count, late, last = count + 1, late + (number < last), max(number, last)
    lost = struct.unpack('II', come.getsockopt(263, 6, 8))[1]  # SOL_PACKET, PACKET_STATISTICS
    print(count, late, lost)
else:
    out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    out.bind((device, 0))
    if way == 'end':
        out.send(frame(0, END, 0))
    else:
        for number in range(int(sys.argv[3])):
            out.send(frame(random.randrange(64), number, number % 2 * 1300))
            if number % 40 == 0:
                time.sleep(0.001)
"#;

#[test]
fn a_flood_of_many_flows_arrives_in_order() {
    let rules = [("stateless", STATELESS), ("stateful", STATEFUL)];
    for (name, rules) in rules {
        for (kind, cable) in [("on", Cable::Veth { offloads: true }), ("xdp", Cable::Xdp)] {
            flood(&format!("order-{name}-{kind}"), cable, rules);
        }
    }
}

fn flood(test: &str, cable: Cable, rules: &str) {
    let programs = ["ip", "sysctl", "ethtool", "python3"];
    let Some(mut hosts) = Hosts::new(test, cable, &programs) else { return };
    hosts.wire(rules, RULES_V6, WIRE);
    let script = hosts.folder.write("flood.py", FLOOD);
    let mut command = hosts.command(2, "python3");
    let mut reader = command.args([&script, "come", "b0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut says = BufReader::new(reader.stdout.take().unwrap());
    let mut line = String::new();
    says.read_line(&mut line).unwrap();
    hosts.does(0, "python3", &[&script, "send", "a0", &FRAMES.to_string()]);
    let passed = || hits(&hosts.counters(), ACCEPT);
    let mut before = 0;
    comes_true("all have passed", || std::mem::replace(&mut before, passed()) == before);
    hosts.does(0, "python3", &[&script, "end", "a0"]);
    line.clear();
    says.read_to_string(&mut line).unwrap();
    assert!(reader.wait().unwrap().success());
    let counts: Vec<u64> = line.split_whitespace().map(|count| count.parse().unwrap()).collect();
    let status = hosts.status();
    // The last one has no number.
    assert_eq!(counts, [passed() - 1, 0, 0], "{test}: came, late, lost; {status}");
    assert!(counts[0] > FRAMES / 2, "{test}: {status}");
    for reason in ["tx_full", "overdue", "handover"] {
        assert_eq!(dropped(&status, "left", reason), 0, "{test}: {reason}: {status}");
    }
    hosts.stop();
}

const TALK: &str = "*filter\n:FORWARD DROP [0:0]\n\
    -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
    -A FORWARD -p tcp -m tcp --dport 8000 -m conntrack --ctstate NEW -j ACCEPT\n\
    -A FORWARD -p tcp -j REJECT --reject-with tcp-reset\n\
    -A FORWARD -p udp -m udp --dport 9 -j REJECT\n\
    -A FORWARD -p udp -j ACCEPT\nCOMMIT\n";
const TALK_V6: &str = "*filter\n:FORWARD DROP [0:0]\n\
    -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
    -A FORWARD -p icmpv6 -j ACCEPT\n\
    -A FORWARD -p tcp -j REJECT --reject-with tcp-reset\n\
    -A FORWARD -p udp -j REJECT\nCOMMIT\n";
/// Asks a port that is refused by TCP, and by UDP.
const ASK: &str = "import socket, sys\n\
    for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:\n\
    \x20 family = socket.getaddrinfo(sys.argv[1], 9, type=kind)[0][0]\n\
    \x20 asks = socket.socket(family, kind)\n\
    \x20 asks.settimeout(20)\n\
    \x20 try: asks.connect((sys.argv[1], 9)); asks.send(b'x'); asks.recv(1)\n\
    \x20 except ConnectionRefusedError: print('refused')\n";

#[test]
fn what_is_rejected_is_answered_in_order() {
    let programs = ["ip", "sysctl", "python3"];
    for (test, cable) in [("reject", Cable::Veth { offloads: true }), ("reject-tun", Cable::Tun)] {
        let Some(mut hosts) = Hosts::new(test, cable, &programs) else { return };
        hosts.wire(TALK, TALK_V6, WIRE);
        for address in [RIGHT, RIGHT_V6] {
            let said = hosts.does(0, "python3", &["-c", ASK, address]);
            assert_eq!(said, "refused\nrefused\n", "{address}");
        }
        let status = hosts.status();
        assert_eq!(dropped(&status, "left", "reject"), 4, "{status}");
        assert_eq!(status["wires"][0]["made"], 4, "{status}");
        hosts.stop();
    }
}

const ECHO: &str = "import socketserver\n\
    class Echo(socketserver.BaseRequestHandler):\n\
    \x20 def handle(self):\n\
    \x20   while data := self.request.recv(65536): self.request.sendall(data)\n\
    socketserver.ThreadingTCPServer(('', 8000), Echo).serve_forever()\n";
/// Sends words to be echoed until it is asked to end; reports the first echo and the last.
const SPEAK: &str = "import socket, sys, threading\n\
    speaks = socket.create_connection((sys.argv[1], 8000), 20)\n\
    def echo():\n\
    \x20 speaks.sendall(b'x' * 1000)\n\
    \x20 left = 1000\n\
    \x20 while left: left -= len(speaks.recv(left)) or sys.exit('it was closed')\n\
    echo()\n\
    print('first', flush=True)\n\
    over = threading.Event()\n\
    threading.Thread(target=lambda: (sys.stdin.readline(), over.set())).start()\n\
    while not over.is_set(): echo()\n\
    echo()\n\
    print('last')\n";

#[test]
fn rules_are_read_anew_under_traffic_and_connections_stay() {
    let programs = ["ip", "ss", "sysctl", "python3"];
    let cable = Cable::Veth { offloads: true };
    let Some(mut hosts) = Hosts::new("ordered-reload", cable, &programs) else { return };
    hosts.wire(TALK, TALK_V6, WIRE);
    hosts.serve(2, "python3", &["-c", ECHO]);
    hosts.listens(2, 8000);
    let mut command = hosts.command(0, "python3");
    command.args(["-c", SPEAK, RIGHT]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut speaker = command.spawn().unwrap();
    let mut says = BufReader::new(speaker.stdout.take().unwrap());
    let mut line = String::new();
    says.read_line(&mut line).unwrap();
    assert_eq!(line, "first\n");

    // Nobody may begin a connection from now on.
    hosts.folder.write("rules.v4", TALK.replace("--dport 8000", "--dport 7999"));
    let pid = hosts.wire.as_ref().unwrap().0.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    let says_program = || hosts.reach(&["--json", "status"]).json()["program"] == 2;
    comes_true("they are read", says_program);
    assert!(!hosts.says(0, "python3", &["-c", SPEAK, RIGHT]).1, "a new one is refused");
    let established = "-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT";
    let before = hits(&hosts.counters(), established);
    comes_true("it goes on", || hits(&hosts.counters(), established) > before + 100);
    speaker.stdin.take().unwrap().write_all(b"end\n").unwrap();
    line.clear();
    says.read_to_string(&mut line).unwrap();
    assert!(speaker.wait().unwrap().success());
    assert_eq!(line, "last\n");
    hosts.stop();
}

/// At its end no frame is without a fate, and no burst waits.
#[test]
fn a_run_that_is_stopped_under_a_flood_sees_its_frames_out() {
    let programs = ["ip", "sysctl", "python3"];
    for (name, rules) in [("stateless", STATELESS), ("stateful", STATEFUL)] {
        let cable = Cable::Veth { offloads: true };
        let test = format!("ordered-stop-{name}");
        let Some(mut hosts) = Hosts::new(&test, cable, &programs) else { return };
        hosts.wire(rules, RULES_V6, WIRE);
        let script = hosts.folder.write("flood.py", FLOOD);
        for (place, device) in [(0, "a0"), (2, "b0")] {
            hosts.serve(place, "python3", &[&script, "send", device, "100000000"]);
        }
        comes_true("frames pass both ways", || {
            let status = hosts.reach(&["--json", "status"]).json();
            let mut wires = status["wires"].as_array().unwrap().iter();
            wires.all(|wire| wire["sent"].as_u64().unwrap() > 1000)
        });
        let last = hosts.end();
        for wire in last["wires"].as_array().unwrap() {
            assert_eq!(
                (&wire["queue"]["bursts"], &wire["queue"]["overdue"]),
                (&0.into(), &0.into())
            );
        }
    }
}

#[test]
fn a_device_of_an_ordered_wire_that_goes_is_waited_for_and_opened_again() {
    for kind in ["af_packet", "af_xdp"] {
        let Some(mut stage) = stage(&format!("og-{kind}")) else { return };
        let workers = "[workers]\ncount = 2\n[privileges]\ndrop = \"off\"\n";
        let kind = format!("kind = \"{kind}\"");
        stage.start_with(&kind, "scheme = \"ordered\"", workers);
        assert_eq!(stage.status()["wires"][0]["queue"]["bursts"], 0);
        goes_and_comes_back(&mut stage);
    }
}

#[test]
fn a_check_says_why_one_worker_evaluates() {
    let folder = Scratch::new("ordered-check");
    let helper = "*raw\n:PREROUTING ACCEPT [0:0]\n\
        -A PREROUTING -p tcp --dport 21 -j CT --helper ftp\nCOMMIT\n";
    let check = |rules: &str, wire: &str| {
        folder.write("rules.v4", rules);
        let port = |name| format!("[[port]]\nname = \"{name}\"\nkind = \"loopback\"\n");
        let ports = port("left") + &port("right");
        let text = format!("{ports}{wire}[rules]\nip = \"rules.v4\"\n");
        let ran = tamis(&["run", &folder.write("live.toml", text), "--check"]);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        ran.err
    };
    // Workers of a wire in order take turns at one table of connections.
    let free = WIRE.replace("ordered", "run_to_completion");
    let why = "one worker evaluates all packets: ";
    let said = check(helper, &free);
    assert!(said.contains(why), "{said}");
    for (rules, wire) in [(helper, WIRE), (TALK, WIRE), (TALK, free.as_str())] {
        let said = check(rules, wire);
        assert!(!said.contains("one worker"), "{said}");
    }
}
