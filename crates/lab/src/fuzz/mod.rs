//! What hostile bytes are fed to: one function for each target of `fuzz/`, which must neither panic nor
//! run away, whatever it is given. `tests/lab/corpora.rs` feeds them the committed corpora as plain tests.

use std::sync::{Arc, LazyLock};

use dataplane::Crossing;
use host::Host;
use live::config::{OnPanic, Order, Other};
use live::{BoxedPort, Request, Run, WireSpec};
use packet::{Checksums, FlowKey, Link, Packet};
use pktio::{Burst, CaptureReader, MemoryPort, Pool, Port};
use rules::convert::convert;
use rules::ipset::Sets;
use rules::model::{Family, Ruleset};
use rules::save::{LoadOptions, load, print_ruleset};

mod admission;
mod conversations;
mod cost;
mod nft;
mod overlay;
mod sightings;
mod signaling;
mod tables;
mod walks;

use cost::MAX_UNPACKED;
use tables::split;
use walks::evaluate;

/// A target: its name, which is that of its corpus, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("parse", parse),
    ("capture", capture),
    ("save", save),
    ("bpf", bpf),
    ("rules", rules),
    ("sets", sets),
    ("host", host),
    ("control", control),
    ("tunnel", overlay::tunnel),
    ("admission", admission::admission),
    ("tables", tables::tables),
    ("conversations", conversations::conversations),
    ("sightings", sightings::sightings),
    ("signaling", signaling::signaling),
    ("cost", cost::cost),
    ("nft", nft::nft),
    // A crate's own tests feed them their corpora.
    #[cfg(fuzzing)]
    ("envelope", live::hostile_envelope),
    #[cfg(fuzzing)]
    ("pending", live::hostile_pending),
    #[cfg(fuzzing)]
    ("names", commands::hostile_question),
];

/// A frame: the first byte says the link type and whether checksums are verified, the second how many
/// bytes were not captured.
pub fn parse(data: &[u8]) {
    let [kind, missing, frame @ ..] = data else { return };
    let link = match kind & 7 {
        0 => Link::Ethernet,
        1 => Link::Raw,
        2 => Link::Ipv4,
        3 => Link::Ipv6,
        4 => Link::Sll,
        5 => Link::Sll2,
        6 => Link::Null,
        _ => Link::Loop,
    };
    let checksums = if kind & 8 == 0 { Checksums::Ignore } else { Checksums::Verify };
    let mut frame = frame.to_vec();
    let wire_len = frame.len() + usize::from(*missing);
    let bridged = packet::parse_frame(&frame, wire_len);
    assert!(bridged.network <= bridged.end, "{bridged:?}");
    let mut packet = Packet::parse(&mut frame, wire_len, link, checksums);
    let headers = *packet.headers();
    assert!(headers.network <= headers.end, "{headers:?}");
    let _ = packet.to_string();
    let _ = FlowKey::of(&packet);
    packet.set_ttl(3);
    packet.set_tos(0xff);
    packet.forget(headers.network + 12..headers.network + 16);
    let _ = packet.to_string();
}

/// A capture file, in any of the formats that are read.
pub fn capture(data: &[u8]) {
    let input = std::io::Cursor::new(data.to_vec());
    let Ok(mut reader) = CaptureReader::new("fuzz", input) else { return };
    let mut burst = Burst::new();
    let mut bytes = 0;
    while let Ok(1..) = reader.rx_burst(&mut burst) {
        bytes += burst.iter().map(|frame| frame.bytes.len() + 1).sum::<usize>();
        if bytes > MAX_UNPACKED {
            return;
        }
    }
    let _ = reader.warning();
}

/// Save text of any family: what loads must print, load again and print the same, and so must what it is in
/// the words of another family.
pub fn save(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for family in [None, Some(Family::Arp), Some(Family::Bridge)] {
        for strict in [false, true] {
            let options = LoadOptions { table: Some("filter"), strict, family };
            let Ok(loaded) = load(text, &options) else { continue };
            prints_as_itself(&loaded.ruleset);
            for to in Family::ALL.into_iter().filter(|to| *to != loaded.ruleset.family) {
                let converted = convert(&loaded.ruleset, to).text;
                if converted.contains('*') {
                    let options = LoadOptions { family: Some(to), ..LoadOptions::default() };
                    let again = load(&converted, &options);
                    prints_as_itself(&again.unwrap_or_else(|e| panic!("{e}\n{converted}")).ruleset);
                }
            }
        }
    }
}

fn prints_as_itself(ruleset: &Ruleset) {
    let printed = printed(ruleset);
    let options = LoadOptions { family: Some(ruleset.family), ..LoadOptions::default() };
    match load(&printed, &options) {
        Ok(second) => assert_eq!(settled(&self::printed(&second.ruleset)), settled(&printed)),
        Err(error) => panic!("printed text does not load: {error}\n{printed}"),
    }
}

/// `ipset save` text, then a line `%`, then a packet that every set is asked for.
pub fn sets(data: &[u8]) {
    let (text, frame) = split(data);
    let Some(sets) = text.and_then(|text| Sets::parse(text).ok()) else { return };
    let rules = "*filter\n:INPUT ACCEPT [0:0]\n\
                 -A INPUT -m set --match-set a src,dst,src -j SET --add-set b src,src,dst --exist\n\
                 -A INPUT -m set ! --match-set b dst,src,dst --return-nomatch -j SET --del-set a dst,dst\n\
                 COMMIT\n";
    if let Ok(loaded) = load(rules, &LoadOptions::default()) {
        evaluate(&loaded.ruleset, frame, Some(sets));
    }
}

/// Files of a host, each after a line `== NAME`; then where packets go on it.
pub fn host(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let files: Vec<(&str, &str)> =
        text.split("== ").filter_map(|file| file.split_once('\n')).collect();
    let file = |name: &str| {
        files.iter().find(|(file, _)| *file == name).map(|(_, text)| (*text).to_owned())
    };
    let Ok(host) = Host::read(file) else { return };
    let v6 = |last| std::net::IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last]);
    for (source, destination) in [
        ([10, 0, 0, 9].into(), [8, 8, 8, 8].into()),
        ([8, 8, 8, 8].into(), [10, 0, 0, 1].into()),
        ([10, 0, 0, 9].into(), [224, 0, 0, 251].into()),
        (v6(1), v6(2)),
    ] {
        for input in [None, Some("lo"), Some("eth0")] {
            let packet = host::Incoming::new(source, destination, input);
            assert_eq!(host.route_in(&packet), host.route_in_assuming(&packet).0);
        }
        let _ = host.address_of("eth0", destination.is_ipv6());
        let _ = host.upper("eth0", Some(5));
    }
}

/// Text without the one quirk that printing takes over from the tool (docs/rule-dialects.md): `-m ipcomp`
/// with every CPI prints bare, which loads as CPI 0.
fn settled(text: &str) -> String {
    text.replace(" -m ipcomp --ipcompspi 0", " -m ipcomp")
}

fn printed(ruleset: &Ruleset) -> String {
    print_ruleset(ruleset, false, |_, _, _| Default::default())
}

/// Bytecode of `-m bpf` in its text form, then a line end, then a packet.
pub fn bpf(data: &[u8]) {
    let split = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let Ok(code) = std::str::from_utf8(&data[..split]) else { return };
    let code: String = code.chars().filter(|c| !matches!(c, '"' | '\\' | '\r')).collect();
    let text =
        format!("*filter\n:INPUT ACCEPT\n-A INPUT -m bpf --bytecode \"{code}\" -j DROP\nCOMMIT\n");
    if let Ok(loaded) = load(&text, &LoadOptions::default()) {
        evaluate(&loaded.ruleset, data.get(split + 1..).unwrap_or_default(), None);
    }
}

/// Save text, then a line `%`, then a packet: the rules evaluate it at every hook.
pub fn rules(data: &[u8]) {
    let (Some(text), frame) = split(data) else { return };
    for family in [None, Some(Family::Arp), Some(Family::Bridge)] {
        if let Ok(loaded) = load(text, &LoadOptions { family, ..LoadOptions::default() }) {
            evaluate(&loaded.ruleset, frame, None);
        }
    }
}

/// A line of a client of the control socket, for a run of one worker with rules, sets and connections. What is a request
/// survives its way over the line; one that ends the run is not carried out.
pub fn control(data: &[u8]) {
    static RUN: LazyLock<Run> = LazyLock::new(controlled);
    let Ok(line) = std::str::from_utf8(data) else { return };
    if let Ok(request) = serde_json::from_str::<Request>(line) {
        let again = serde_json::to_string(&request).expect("a request is JSON");
        assert_eq!(serde_json::from_str::<Request>(&again).ok().as_ref(), Some(&request));
        if request == (Request::Stop {}) {
            return;
        }
    }
    let answer = RUN.answer(line);
    let refusal = answer["error"]["what"].as_str();
    assert!(refusal.is_some_and(|what| !what.is_empty()) || answer["schema"].is_string());
    assert!(answer.to_string().len() <= MAX_UNPACKED);
}

/// A run that nothing comes to.
fn controlled() -> Run {
    let pool = Pool::new(64, 2048, 0);
    let ports = ["left", "right"].map(|name| {
        let [far, near] = MemoryPort::pair(&pool, 8, 8);
        // It is there for as long as the process.
        Box::leak(Box::new(far));
        (name.to_owned(), Box::new(near) as BoxedPort)
    });
    let ends = WireSpec {
        ports,
        crossings: [Crossing::default(); 2],
        other: Other::Pass,
        order: Order::Flow,
    };
    let rules = "*filter\n:FORWARD ACCEPT [0:0]\n\
        -A FORWARD -m conntrack --ctstate ESTABLISHED -m set --match-set a src -j DROP\nCOMMIT\n";
    let loaded = load(rules, &LoadOptions::default()).expect("rules");
    let sets = "create a hash:ip maxelem 64 timeout 9\ncreate b hash:ip maxelem 64\n\
        create n hash:net maxelem 64\ncreate l list:set\nadd l n\n";
    let sets = Some(Sets::parse(sets).expect("sets"));
    let mut loaded = live::Loaded::from(([Arc::new(loaded.ruleset)], dataplane::Config::default()));
    loaded.start.sets = sets;
    let run = Run::start(vec![ends], loaded, OnPanic::Closed);
    run.expect("a run")
}
