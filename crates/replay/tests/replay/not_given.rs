//! Bytes that a packet spec does not give: a verdict that is certain without them is the verdict of every packet that has
//! what the words say, whatever is in the rest.

use dataplane::{Config, Evaluator, Observer, Program};
use packet::{Checksums, L3, Link, Packet, checksum};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRng;
use replay::spec::{self, Spec, parse};
use replay::{RulesFile, why};
use rules::eval;
use rules::save::{LoadOptions, load};

/// What rules test, of packets of any protocol and of some.
const TESTS: [&str; 51] = [
    "-p udp -m string --string wpad --algo bm",
    "-m string --string wpad --algo kmp --from 20 --to 60",
    "-m string ! --string GET --algo bm",
    "-m string --hex-string |0a000001| --algo bm",
    "-m u32 --u32 6&0xFF=17",
    "-m u32 --u32 0&0xFFFF=40:100",
    "-m u32 --u32 4&0x3FFF=0",
    "-m u32 --u32 4&0x4000=0",
    "-m u32 --u32 0>>22&0x3C@8&0x1=1",
    "-m u32 --u32 0>>22&0x3C@12>>26&0x3C@0=0:0x7fffffff",
    "-m u32 ! --u32 28=0:0x7fffffff",
    "-m u32 --u32 60=0:0xffffffff",
    "-m u32 --u32 0>>22&0x3C@0>>16=0:40000",
    "-m length --length 0:60",
    "-m length ! --length 48:2000",
    "-p tcp -m tcpmss --mss 536:65535",
    "-p tcp -m tcpmss ! --mss 536:65535",
    "-p tcp -m tcp --tcp-option 2",
    "-p tcp -m tcp ! --tcp-option 8",
    "-p tcp -m tcp --syn",
    "-p tcp -m tcp --tcp-flags ALL SYN,ACK",
    "-p tcp -m tcp --dport 80 --tcp-flags SYN NONE",
    "-p tcp -m ecn --ecn-tcp-cwr",
    "-p esp -m esp --espspi 0:0x7fffffff",
    "-p esp -m esp ! --espspi 5",
    "-p ah -m ah --ahspi 0:0x7fffffff",
    "-p ah -m ah --ahres",
    "-p sctp -m sctp --chunk-types any INIT",
    "-p sctp -m sctp --chunk-types all DATA:be",
    "-p sctp -m sctp ! --chunk-types only INIT,DATA",
    "-p sctp -m sctp --dport 80",
    "-p dccp -m dccp --dccp-types REQUEST",
    "-p dccp -m dccp ! --dccp-types REQUEST,DATA",
    "-p dccp -m dccp --dccp-option 3",
    "-p dccp -m dccp --sport 5",
    "-m mac --mac-source 02:00:00:00:00:01",
    "-m mac ! --mac-source 02:00:00:00:00:01",
    "-m pkttype --pkt-type unicast",
    "-m bpf --bytecode \"4,48 0 0 9,21 0 1 17,6 0 0 1,6 0 0 0\"",
    "-m bpf --bytecode \"4,128 0 0 0,37 0 1 60,6 0 0 1,6 0 0 0\"",
    "-m bpf --bytecode \"4,48 0 0 44,37 0 1 128,6 0 0 1,6 0 0 0\"",
    "-m bpf --bytecode \"4,40 0 0 2,37 0 1 60,6 0 0 1,6 0 0 0\"",
    "-m conntrack --ctstate NEW",
    "-m conntrack --ctstate INVALID",
    "-m state ! --state NEW",
    "-m ttl --ttl-eq 63",
    "-m dscp --dscp 0",
    "-m quota --quota 50",
    "-m connbytes --connbytes 50 --connbytes-dir both --connbytes-mode bytes",
    "-m hashlimit --hashlimit-above 1kb/s --hashlimit-name a --hashlimit-mode srcip",
    "! -f",
];

/// Tests of IPv4 alone begin or look so.
const OF_IPV4: [&str; 10] =
    ["ttl", "-f", "0a0000", "u32 6&", "0&0xF", "4&0x3", "4&0x4", "0>>22", "48 0 0 9", "40 0 0 2"];

const PACKETS: [&str; 22] = [
    "tcp A:5 > B:80",
    "tcp A:5 > B:80 syn,ack",
    "tcp A:5 > B:80 ack",
    "tcp A:5 > B:80 rst",
    "tcp A:5 > B:80 options=usual",
    "tcp A:5 > B:80 options=mss:500 payload=none",
    "tcp A:5 > B:80 ack options=none",
    "tcp A:5 > B:80 psh,ack payload=GET%20/",
    "udp A:5 > B:53",
    "udp A:5 > B:53 dns=wpad.example.org AAAA",
    "udp A:5 > B:53 payload=xwpadx",
    "icmp A > B echo-request",
    "icmp A > B destination-unreachable/3",
    "esp A > B",
    "esp A > B spi=5",
    "ah A > B",
    "ah A > B spi=5",
    "sctp A:5 > B:80",
    "sctp A:5 > B:80 chunk=init",
    "sctp A:5 > B:80 chunk=sack,data",
    "dccp A:5 > B:80",
    "dccp A:5 > B:80 type=request",
];

const KEYS: [&str; 12] = [
    "",
    "",
    "",
    "len=60",
    "len=100",
    "len=400",
    "mac=02:00:00:00:00:01",
    "seq=7",
    "win=9",
    "id=9 df=yes",
    "ttl=64 tos=0",
    "label=9",
];

const TARGETS: [&str; 4] = ["-j ACCEPT", "-j DROP", "-j REJECT", "-j RETURN"];
/// Rules that rewrite packets before.
const MANGLES: [&str; 5] = [
    "",
    "-A FORWARD -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss 1200\n",
    "-A FORWARD -p tcp -j TCPOPTSTRIP --strip-options 8\n",
    "-A FORWARD -m string --string wpad --algo bm -j DSCP --set-dscp 10\n",
    "-A FORWARD -m length --length 0:60 -j MARK --set-mark 1\n",
];

struct Looks;
impl eval::Observer for Looks {}
impl Observer for Looks {}

fn rules() -> impl Strategy<Value = (Vec<(&'static str, &'static str)>, &'static str, &'static str)>
{
    let rule = (select(&TESTS[..]), select(&TARGETS[..]));
    let rules = prop::collection::vec(rule, 1..5);
    (rules, select(&["ACCEPT", "DROP"][..]), select(&MANGLES[..]))
}

fn text(
    (rules, policy, mangle): &(Vec<(&'static str, &'static str)>, &'static str, &'static str),
    is_v6: bool,
) -> String {
    let mut text = format!(
        "*mangle\n:FORWARD ACCEPT [0:0]\n{mangle}COMMIT\n*filter\n:FORWARD {policy} [0:0]\n"
    );
    for (test, target) in rules {
        let of_others: &[&str] = if is_v6 { &OF_IPV4 } else { &["ahres"] };
        if !of_others.iter().any(|other| test.contains(other)) {
            let test =
                if is_v6 { test.replace("-p icmp ", "-p icmpv6 ") } else { (*test).to_owned() };
            text.push_str(&format!("-A FORWARD {test} {target}\n"));
        }
    }
    text + "COMMIT\n"
}

fn program(text: &str, is_v6: bool) -> Program {
    let family = if is_v6 { rules::model::Family::Ipv6 } else { rules::model::Family::Ipv4 };
    let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
    let loaded = load(text, &options).unwrap_or_else(|error| panic!("{text}\n{error}"));
    let mut config = Config::default();
    config.ct.mode = spec::CT;
    Program::new([std::sync::Arc::new(loaded.ruleset)], config)
}

fn verdict(program: &Program, spec: &Spec, mut frame: Vec<u8>, is_described: bool) -> &'static str {
    let [(_, _, mut arrival)] =
        spec::arrivals([spec], &Config::default()).collect::<Vec<_>>().try_into().ok().unwrap();
    if !is_described {
        (arrival.gaps, arrival.wire_len) = (None, frame.len());
    }
    Evaluator::new(program).handle(&mut frame, &arrival, &mut Looks).outcome.end.verdict.word()
}

/// A packet that the words describe: what they do not give is drawn, and what is in it is well formed.
fn complete(spec: &Spec, rng: &mut TestRng) -> Vec<u8> {
    let mut frame = spec.frame.clone();
    frame.resize(spec.wire_len, 0);
    if spec.gaps.open {
        let more = [0, 4, 12, 40, 200][rng.random_range(0..5)];
        frame.resize(frame.len() + more, 0);
        rng.fill_bytes(&mut frame[spec.wire_len..]);
    }
    for range in &spec.gaps.ranges {
        rng.fill_bytes(&mut frame[range.clone()]);
    }
    let is_free = |byte: usize| {
        byte >= spec.wire_len || spec.gaps.ranges.iter().any(|range| range.contains(&byte))
    };
    let free = (54..frame.len().saturating_sub(4)).find(|at| (*at..at + 4).all(is_free));
    if let Some(at) = free.filter(|_| rng.random()) {
        frame[at..at + 4].copy_from_slice(b"wpad");
    }
    // Addresses of single hosts.
    frame[0] &= 0xfe;
    frame[6] &= 0xfe;
    let total = (frame.len() - 14) as u16;
    let (protocol, at) = if frame[14] >> 4 == 4 {
        if is_free(20) {
            // It is whole.
            frame[20..22].copy_from_slice(if rng.random() { &[0x40, 0] } else { &[0, 0] });
        }
        frame[16..18].copy_from_slice(&total.to_be_bytes());
        frame[24..26].fill(0);
        let sum = !checksum::sum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        (frame[23], 34)
    } else {
        frame[18..20].copy_from_slice(&(total - 40).to_be_bytes());
        (frame[20], 54)
    };
    let is_open = |byte: usize| spec.gaps.ranges.iter().any(|range| range.contains(&byte));
    let len = frame.len() - at;
    match protocol {
        6 if is_open(at + 12) => {
            let most = (len / 4).min(15) as u8;
            let words = rng.random_range(5..=most.max(5));
            frame[at + 12] = words << 4;
            let options = &mut frame[at + 20..at + usize::from(words) * 4];
            if rng.random() && options.len() >= 4 {
                options.fill(1);
                options[..4].copy_from_slice(&[2, 4, rng.random(), rng.random()]);
            }
        }
        17 => frame[at + 4..at + 6].copy_from_slice(&(len as u16).to_be_bytes()),
        132 if is_open(at + 12) && len >= 16 || spec.gaps.open && protocol == 132 && len >= 16 => {
            let chunk = [rng.random_range(0..4), rng.random(), 0, (len - 12) as u8];
            if rng.random() {
                frame[at + 12..at + 16].copy_from_slice(&chunk);
            }
        }
        33 if is_open(at + 4) && rng.random() => frame[at + 4] = rng.random_range(4..8),
        _ => {}
    }
    frame
}

fn named(packet: &str, is_v6: bool) -> String {
    match is_v6 {
        false => packet.replace('A', "10.0.0.1").replace('B', "10.0.0.2"),
        true => {
            let end = |letter: &str, text: String| {
                let address = format!("2001:db8::{}", if letter == "A" { 1 } else { 2 });
                text.replace(&format!("{letter}:"), &format!("[{address}]:"))
                    .replace(&format!("{letter} "), &format!("{address} "))
            };
            let text = end("A", format!("{packet} "));
            end("B", text.replace("AAAA", "TXT")).replace("icmp ", "icmpv6 ")
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn no_certain_answer_changes_with_bytes_that_were_not_given(
        rules in rules(),
        packet in select(&PACKETS[..]),
        keys in select(&KEYS[..]),
        is_v6 in any::<bool>(),
        mut rng in any::<u64>().prop_perturb(|_, rng| rng),
    ) {
        let words = format!("in=a out=b path=forward {} {keys}", named(packet, is_v6));
        let Ok(spec) = parse(&words) else { return Ok(()) };
        let text = text(&rules, is_v6);
        let program = program(&text, is_v6);
        let said = verdict(&program, &spec, spec.frame.clone(), true);
        if said == "unknown" {
            return Ok(());
        }
        for _ in 0..12 {
            let frame = complete(&spec, &mut rng);
            let mut bytes = frame.clone();
            let len = bytes.len();
            let shown = Packet::parse(&mut bytes, len, Link::Ethernet, Checksums::Verify);
            prop_assert!(!matches!(shown.headers().l3, L3::Fault(_)), "{words}: {shown}");
            let got = verdict(&program, &spec, frame.clone(), false);
            prop_assert_eq!(got, said, "{}\n{}\n{:02x?}", words, text, frame);
        }
    }
}

/// The verdict of a packet of the spec `words` under rules of filter FORWARD, and what an unknown one says to give.
fn told(rule: &str, words: &str) -> (&'static str, String) {
    let text = format!("*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD {rule}\nCOMMIT\n");
    let file = RulesFile::from_text("r.v4", text, &LoadOptions::default()).unwrap();
    let mut config = Config::default();
    config.ct.mode = spec::CT;
    let spec = parse(words).unwrap_or_else(|error| panic!("{words}: {error}"));
    let story = why::of_conversation(&[file], &config.clone().into(), &[], &spec, None);
    let json = story.json();
    (story.verdict().word(), json["unknown_because"][0]["how"].as_str().unwrap_or("").to_owned())
}

#[test]
fn what_is_not_given_is_named_and_can_be_given() {
    let tcp = "in=a out=b path=forward tcp 10.0.0.1:5 > 10.0.0.2:80 syn";
    let udp = "in=a out=b path=forward udp 10.0.0.1:5 > 10.0.0.2:53";
    let sctp = "in=a out=b path=forward sctp 10.0.0.1:5 > 10.0.0.2:80";
    let esp = "in=a out=b path=forward esp 10.0.0.1 > 10.0.0.2";
    let dccp = "in=a out=b path=forward dccp 10.0.0.1:5 > 10.0.0.2:80";
    let mss = "-p tcp -m tcpmss ! --mss 536:65535 -j DROP";
    let dns = "-p udp -m string --hex-string |0477706164| --algo bm -j DROP";
    for (rule, packet, named, given, then) in [
        (mss, tcp, "options=mss:1460", "options=mss:1460", "accept"),
        (mss, tcp, "options=usual", "options=usual", "accept"),
        (mss, tcp, "options=usual", "options=mss:400", "drop"),
        (mss, tcp, "options=usual", "options=none", "drop"),
        ("-p tcp -m tcp --tcp-option 2 -j DROP", tcp, "options=", "options=usual", "drop"),
        (dns, udp, "dns=NAME TYPE", "dns=wpad.example.org A", "drop"),
        (dns, udp, "dns=NAME TYPE", "dns=www.example.org", "accept"),
        (dns, udp, "payload=", "payload=x%04wpad", "drop"),
        (dns, udp, "payload=", "payload=0x0477706164", "drop"),
        (dns, udp, "payload=", "payload=none", "accept"),
        (dns, udp, "payload=", "len=28", "accept"),
        ("-m length --length 100:200 -j DROP", udp, "len=", "len=100", "drop"),
        ("-m length --length 100:200 -j DROP", tcp, "len=", "options=usual payload=none", "accept"),
        (
            "-m mac --mac-source 02:00:00:00:00:01 -j DROP",
            udp,
            "mac=",
            "mac=02:00:00:00:00:01",
            "drop",
        ),
        ("-p esp -m esp --espspi 0:7 -j DROP", esp, "spi=", "spi=5", "drop"),
        ("-p dccp -m dccp --dccp-types REQUEST -j DROP", dccp, "type=", "type=request", "drop"),
        (
            "-p sctp -m sctp --chunk-types any INIT -j DROP",
            sctp,
            "chunk=init",
            "chunk=init",
            "drop",
        ),
        ("-m conntrack --ctstate INVALID -j DROP", sctp, "chunk=init", "chunk=init", "accept"),
        ("-m u32 --u32 4&0x4000=0x4000 -j DROP", udp, "df=yes", "df=yes", "drop"),
        ("-m u32 --u32 4&0x4000=0x4000 -j DROP", udp, "df=yes", "df=no", "accept"),
        (
            "-m u32 --u32 0>>22&0x3C@8>>16&0xFFFF=1:9 -j DROP",
            udp,
            "payload=",
            "payload=xxyz",
            "accept",
        ),
    ] {
        let (verdict, how) = told(rule, packet);
        assert_eq!(verdict, "unknown", "{rule}: {packet}");
        assert!(how.contains(named), "{rule}: {how}");
        assert_eq!(told(rule, &format!("{packet} {given}")).0, then, "{rule}: {packet} {given}");
    }
}

/// Nobody says on which day a described packet came, nor whom its frame addressed.
#[test]
fn the_day_and_the_frame_are_not_given() {
    let at = "-m time --timestart 08:00 --timestop 18:00 -j DROP";
    let (verdict, how) = told(at, "in=a out=b path=forward udp 10.0.0.1:5 > 10.0.0.2:53");
    assert_eq!(verdict, "unknown");
    assert!(how.contains("capture"), "{how}");
    for (kind, address, verdict) in [
        ("unicast", "10.0.0.2", "unknown"),
        ("broadcast", "10.0.0.255", "unknown"),
        ("multicast", "10.0.0.2", "unknown"),
        ("broadcast", "255.255.255.255", "drop"),
        ("unicast", "255.255.255.255", "accept"),
        ("multicast", "224.0.0.251", "drop"),
        ("unicast", "224.0.0.251", "accept"),
    ] {
        let words = format!("in=a out=b path=forward udp 10.0.0.1:5 > {address}:53");
        let rule = format!("-m pkttype --pkt-type {kind} -j DROP");
        assert_eq!(told(&rule, &words).0, verdict, "{kind} {address}");
    }
}

#[test]
fn what_does_not_hang_on_it_is_known() {
    let of = |words: &str| format!("in=a out=b path=forward {words}");
    for (rule, words, verdict) in [
        ("-m conntrack --ctstate NEW -j DROP", "tcp 10.0.0.1:5 > 10.0.0.2:80 syn", "drop"),
        ("-m conntrack --ctstate NEW -j DROP", "udp 10.0.0.1:5 > 10.0.0.2:80", "drop"),
        ("-m conntrack --ctstate NEW -j DROP", "ping 10.0.0.1 > 10.0.0.2", "drop"),
        ("-m conntrack --ctstate INVALID -j DROP", "tcp 10.0.0.1:5 > 10.0.0.2:80 rst", "drop"),
        ("-p tcp -m tcp --dport 80 --syn -j DROP", "tcp 10.0.0.1:5 > 10.0.0.2:80", "drop"),
        ("-p tcp -j REJECT --reject-with tcp-reset", "tcp 10.0.0.1:5 > 10.0.0.2:80", "reject"),
        ("-m ttl --ttl-eq 63 -j DROP", "udp 10.0.0.1:5 > 10.0.0.2:80", "drop"),
        ("-f -j DROP", "udp 10.0.0.1:5 > 10.0.0.2:80", "accept"),
        ("-p sctp -m sctp --dport 80 -j DROP", "sctp 10.0.0.1:5 > 10.0.0.2:80", "drop"),
        ("-p esp -j DROP", "esp 10.0.0.1 > 10.0.0.2", "drop"),
    ] {
        assert_eq!(told(rule, &of(words)).0, verdict, "{rule}: {words}");
    }
}

#[test]
fn a_line_of_tcpdump_gives_the_question() {
    let drop = "-p udp -m string --hex-string |047770616406646f6d61696e046e616d6500| --algo bm --to 65535 -j DROP";
    let line = "IP 198.51.100.7.6001 > 198.51.100.1.53: 12345+ A? wpad.domain.name. (34)";
    assert_eq!(told(drop, line).0, "drop");
    let log = "IN=a OUT=b SRC=198.51.100.7 DST=198.51.100.1 LEN=62 TOS=0x00 PREC=0x00 TTL=64 ID=7 DF \
               PROTO=UDP SPT=6001 DPT=53 LEN=42";
    assert_eq!(told(drop, log).0, "unknown");
    // The wire has lengths, not dots.
    assert_eq!(told("-p udp -m string --string wpad.domain --algo bm -j DROP", line).0, "accept");
}

#[test]
fn numbers_of_a_conversation_follow_each_other() {
    let text = "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m conntrack --ctstate INVALID -j REJECT\n\
                -A FORWARD -j ACCEPT\nCOMMIT\n";
    let file = RulesFile::from_text("r.v4", text.to_owned(), &LoadOptions::default()).unwrap();
    let mut config = Config::default();
    config.ct.mode = spec::CT;
    for first in ["", "seq=4000000000 "] {
        let words = [
            &format!("in=a out=b path=forward tcp 10.0.0.1:5 > 10.0.0.2:80 syn {first}") as &str,
            "in=b out=a path=forward tcp 10.0.0.2:80 > 10.0.0.1:5 syn,ack seq=77",
            "in=a out=b path=forward tcp 10.0.0.1:5 > 10.0.0.2:80 ack",
            "in=a out=b path=forward tcp 10.0.0.1:5 > 10.0.0.2:80 psh,ack options=none payload=GET",
            "in=b out=a path=forward tcp 10.0.0.2:80 > 10.0.0.1:5 ack",
            "in=b out=a path=forward tcp 10.0.0.2:80 > 10.0.0.1:5 fin,ack",
            "in=a out=b path=forward tcp 10.0.0.1:5 > 10.0.0.2:80 fin,ack",
        ];
        let specs: Vec<Spec> = words.iter().map(|words| parse(words).unwrap()).collect();
        for last in 0..specs.len() {
            let files = std::slice::from_ref(&file);
            let story = why::of_conversation(
                files,
                &config.clone().into(),
                &specs[..last],
                &specs[last],
                None,
            );
            assert_eq!(story.verdict().word(), "accept", "{}\n{}", words[last], story.text(true));
        }
    }
}

#[test]
fn a_malformed_value_is_pointed_at() {
    let packet = "udp 10.0.0.1:5 > 10.0.0.2:53";
    for (packet, key, at) in [
        (packet, "payload=0x1", 8),
        (packet, "payload=%4", 8),
        (packet, "dns=a..b A", 4),
        (packet, "mac=1:2", 4),
        (packet, "options=none", 0),
        (packet, "chunk=init", 0),
        (packet, "spi=1", 0),
        (packet, "label=1", 0),
        (packet, "len=30 payload=abc", 4),
        ("tcp 10.0.0.1:5 > 10.0.0.2:53", "options=mss", 8),
        ("tcp 10.0.0.1:5 > 10.0.0.2:53", "options=sack,ts:1", 8),
        ("tcp 10.0.0.1:5 > 10.0.0.2:53", "win=70000", 4),
        ("sctp 10.0.0.1:5 > 10.0.0.2:53", "chunk=inti", 6),
        ("dccp 10.0.0.1:5 > 10.0.0.2:53", "type=no", 5),
    ] {
        let error = parse(&format!("{packet} {key}")).unwrap_err();
        assert_eq!(error.column, packet.len() + 2 + at, "{key}: {error}");
    }
}
