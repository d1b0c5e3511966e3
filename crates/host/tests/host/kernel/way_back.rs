//! Whether the kernel finds a way back to a packet's source, as counters of `-m rpfilter` tell, where we do.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::process::Command;

use host::{Host, Incoming, WayBack};

use super::{Draw, LINKS, Query, in_namespace, query, scenes, told_scene};

/// A frame to the interface of that number, with a datagram in it.
fn frame(query: &Query, number: usize) -> Vec<u8> {
    let link = LINKS.iter().position(|link| *link == query.input).expect("one of them") as u8;
    let addr = |text: &str| text.parse().expect("an address");
    let mut frame = vec![2, 0, 0, 0, 0, link, 2, 0, 0, 0, 1, link];
    match (addr(&query.source), addr(&query.destination)) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut header = vec![0x45, query.tos, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0];
            header.extend(source.octets().into_iter().chain(destination.octets()));
            let words = header.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1]));
            let sum: u32 = words.sum();
            let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            frame.extend([8, 0].into_iter().chain(header));
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            frame.extend([0x86, 0xdd, 0x60 | query.tos >> 4, query.tos << 4, 0, 0, 0, 8, 17, 64]);
            frame.extend(source.octets().into_iter().chain(destination.octets()));
        }
        _ => panic!("addresses of one family"),
    }
    frame.extend((number as u16).to_be_bytes().into_iter().chain([0, 53, 0, 8, 0, 0]));
    frame
}

/// Options of `-m rpfilter`: by bit.
const OPTIONS: [&str; 4] = ["--loose", "--validmark", "--accept-local", "--invert"];

/// Rules that count each query that matches under each set of options.
fn rpfilter_rules(queries: &[Query], is_v6: bool) -> String {
    let mut rules = String::from("*mangle\n");
    for (number, query) in (1..).zip(queries) {
        if query.source.contains(':') != is_v6 {
            continue;
        }
        let rule = format!("-A PREROUTING -i e+ -p udp --sport {number}");
        let _ = writeln!(rules, "{rule} -j MARK --set-mark {}", query.mark);
        for options in 0..16 {
            let words = OPTIONS.iter().enumerate().filter(|(bit, _)| options >> bit & 1 != 0);
            let words: Vec<&str> = words.map(|(_, word)| *word).collect();
            let _ = writeln!(rules, "{rule} -m rpfilter {}", words.join(" "));
        }
    }
    rules.push_str("-A PREROUTING -j DROP\nCOMMIT\n");
    rules
}

/// What else the scenes of the way back have: addresses of the links that the frames are for, and IPv6's own.
const NEAR: &str = "for n in 0 1 2; do ip link set e$n address 02:00:00:00:00:0$n
    ip addr add fe80::$((n + 1))/64 dev e$n nodad; done
";

const SENDER: &str = "import socket, sys
sockets = {}
for line in open(sys.argv[1]):
    device, frame = line.split()
    if device not in sockets:
        sockets[device] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        sockets[device].bind((device, 0))
    sockets[device].send(bytes.fromhex(frame))
";

/// Queries whose sources are often the host's own, of a neighbour, or none.
fn back_query(draw: &mut Draw) -> Query {
    let mut query = query(draw);
    let is_v6 = query.source.contains(':');
    match (draw.below(10), is_v6) {
        (0, false) => query.source = format!("10.{}.0.1", draw.below(3)),
        (0, true) => query.source = format!("2001:db8:{}::1", draw.below(3)),
        (1 | 2, true) => query.source = draw.of(&["fe80::9", "fe80::1", "fe80::2"]).into(),
        (3, true) => query.source = "::".into(),
        (3, false) => {
            query.source = "0.0.0.0".into();
            query.destination = draw.of(&["255.255.255.255", "224.0.0.77", "10.0.0.1"]).into();
        }
        (4, true) => query.destination = "ff02::1".into(),
        _ => {}
    }
    query
}

#[test]
fn the_kernel_finds_the_way_back_as_we_do() {
    let (mut wrong, mut open, mut all, mut valid) = (Vec::new(), 0, 0, 0);
    let has_python = Command::new("python3").arg("-V").output().is_ok();
    if !has_python {
        println!("SKIPPED: the way back against the kernel needs python3");
    }
    let scenes = if has_python { scenes() } else { 0 };
    for seed in 0..scenes {
        let mut draw = Draw(2000 + seed);
        let queries: Vec<Query> = (0..120).map(|_| back_query(&mut draw)).collect();
        let mut script = told_scene(&mut draw, NEAR);
        for (tool, is_v6) in [("iptables", false), ("ip6tables", true)] {
            let rules = rpfilter_rules(&queries, is_v6);
            let _ = write!(script, "{tool}-restore <<'END'\n{rules}END\n");
        }
        let _ = writeln!(script, "exec 3<<'END'");
        for (number, query) in (1..).zip(&queries) {
            let hex = frame(query, number)
                .iter()
                .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
            let _ = writeln!(script, "{} {hex}", query.input.replace('e', "p"));
        }
        let _ = write!(
            script,
            "END\npython3 -c '{SENDER}' /dev/fd/3\nsleep 0.2\n\
             iptables-save -c -t mangle; ip6tables-save -c -t mangle\n"
        );
        let (printed, complaints) = in_namespace(&script);
        let parts: HashMap<&str, &str> =
            printed.split("#### ").filter_map(|part| part.split_once('\n')).collect();
        let host = Host::read(|name| parts.get(name).map(|text| (*text).to_owned())).unwrap();
        let mut arrived = vec![false; queries.len() + 1];
        for line in parts["answers"].lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let Some(number) = words.iter().position(|word| *word == "--sport") else { continue };
            let number: usize = words[number + 1].parse().unwrap();
            let counts = words[0].starts_with("[1:");
            if line.contains("MARK") {
                arrived[number] = counts;
                continue;
            }
            if !arrived[number] {
                continue;
            }
            let query = &queries[number - 1];
            let [loose, valid_mark, accepts_local, invert] =
                OPTIONS.map(|option| words.contains(&option));
            let packet = Incoming {
                tos: Some(query.tos),
                mark: Some(if valid_mark { query.mark } else { 0 }),
                protocol: Some(17),
                ..Incoming::new(
                    query.source.parse().unwrap(),
                    query.destination.parse().unwrap(),
                    Some(query.input),
                )
            };
            let ours = host.way_back(&packet, WayBack { loose, accepts_local, onward: false });
            all += 1;
            valid += usize::from(counts != invert);
            match ours {
                Err(_) => open += 1,
                Ok(ours) if ours == (counts != invert) => {}
                Ok(_) => wrong.push(format!(
                    "scene {seed}: {} from {}\n  ours {ours:?}\n  kernel {line}",
                    query.line, query.source
                )),
            }
        }
        assert!(arrived.iter().filter(|is| **is).count() > 60, "{complaints}");
    }
    println!("{all} answers, {valid} with a way back, {} otherwise, {open} open", wrong.len());
    let first = wrong[..wrong.len().min(12)].join("\n");
    assert!(wrong.is_empty(), "{} of {all}\n{first}", wrong.len());
    assert!(scenes == 0 || valid * 10 > all && valid * 10 < all * 9 && open * 50 < all);
}
