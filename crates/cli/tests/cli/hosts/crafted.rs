//! What no ordinary program of these hosts sends: tagged frames, and SCTP.

use super::{Cable, Hosts, RIGHT, dropped, hits};

const RULES: &str = "*filter\n:FORWARD DROP [0:0]\n\
    -A FORWARD -p udp -m udp --dport 53 -j ACCEPT\n\
    -A FORWARD -p sctp -m sctp --dport 9 -j ACCEPT\n\
    -A FORWARD -p sctp -m sctp --sport 9 -m conntrack --ctstate ESTABLISHED -j ACCEPT\nCOMMIT\n";
const RULES_V6: &str = "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n";

/// Sends one UDP datagram to port 53 and one to port 54 behind each stack of tags, and reads, on the other host, which
/// frames come: `recv` prints tags and port of each.
const FRAMES: &str = r#"
import socket, struct, sys
TAGS = [[], [(0x8100, 5)], [(0x8100, 0xe005)], [(0x88a8, 7), (0x8100, 9)], [(0x8100, 1), (0x8100, 2), (0x8100, 3)]]
SOURCE = b'\x02\0\0\0\0\1'

def sum16(data):
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff

def frame(tags, port):
    udp = struct.pack('!4H', 4000, port, 18, 0) + b'0123456789'
    head = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, b'\x0a\x09\0\1', b'\x0a\x09\0\2')
    head = head[:10] + struct.pack('!H', sum16(head)) + head[12:]
    link = b'\xff' * 6 + SOURCE
    for kind, number in tags:
        link += struct.pack('!HH', kind, number)
    return link + b'\x08\0' + head + udp

if sys.argv[1] == 'send':
    out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    out.bind(('a0', 0))
    for tags in TAGS:
        for port in (54, 53):
            out.send(frame(tags, port))
else:
    come = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
    come.setsockopt(263, 8, 1)  # SOL_PACKET, PACKET_AUXDATA: the outer tag is told beside the frame.
    come.bind(('b0', 0))
    come.settimeout(20)
    print('listening', flush=True)
    left = len(TAGS)
    while left:
        data, words, _, _ = come.recvmsg(2048, 256)
        tags, at = [], 12
        if data[6:12] != SOURCE:  # The host's own, and what its neighbour says.
            continue
        left -= 1
        for level, kind, aux in words:
            status, _, _, _, _, number, tpid = struct.unpack('IIIHHHH', aux[:20])
            if status & 0x10:
                tags.append((tpid, number))
        while data[at:at + 2] in (b'\x81\0', b'\x88\xa8'):
            tags.append(struct.unpack('!HH', data[at:at + 4]))
            at += 4
        print(tags, struct.unpack('!H', data[at + 24:at + 26])[0])
"#;

#[test]
fn tags_stay_and_rules_look_past_them() {
    for offloads in [true, false] {
        let programs = ["ip", "sysctl", "ethtool", "python3"];
        let test = if offloads { "tagged-on" } else { "tagged-off" };
        let Some(mut hosts) = Hosts::new(test, Cable::Veth { offloads }, &programs) else { return };
        hosts.wire(RULES, RULES_V6, "");
        let script = hosts.folder.write("frames.py", FRAMES);
        let mut command = hosts.command(2, "python3");
        command.args([&script, "recv"]).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut says = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut says, &mut line).unwrap();
        hosts.does(0, "python3", &[&script, "send"]);
        let mut came = String::new();
        std::io::Read::read_to_string(&mut says, &mut came).unwrap();
        assert!(child.wait().unwrap().success());
        let expected = "[] 53\n[(33024, 5)] 53\n[(33024, 57349)] 53\n\
            [(34984, 7), (33024, 9)] 53\n[(33024, 1), (33024, 2), (33024, 3)] 53\n";
        assert_eq!(came, expected, "offloads {offloads}");
        let status = hosts.status();
        assert_eq!(dropped(&status, "left", "policy"), 5, "{status}");
        hosts.stop();
    }
}

#[test]
fn an_association_of_sctp_passes() {
    const SERVER: &str = "/usr/lib/usrsctp/discard_server";
    const CLIENT: &str = "/usr/lib/usrsctp/client";
    let programs = ["ip", "sysctl", "timeout", SERVER, CLIENT];
    let cable = Cable::Veth { offloads: true };
    let Some(mut hosts) = Hosts::new("sctp", cable, &programs) else { return };
    hosts.wire(RULES, RULES_V6, "");
    hosts.serve(2, SERVER, &[]);
    std::thread::sleep(std::time::Duration::from_millis(300));
    let client =
        format!("(echo one; sleep 0.3; echo two; sleep 0.3) | timeout 5 {CLIENT} {RIGHT} 9");
    hosts.says(0, "sh", &["-c", &client]);
    let saved = hosts.counters();
    assert!(hits(&saved, "-A FORWARD -p sctp -m sctp --dport 9 -j ACCEPT") > 4, "{saved}");
    let replies =
        "-A FORWARD -p sctp -m sctp --sport 9 -m conntrack --ctstate ESTABLISHED -j ACCEPT";
    assert!(hits(&saved, replies) > 3, "{saved}");
    hosts.stop();
}
