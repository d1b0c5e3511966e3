//! What hostile bytes are fed to: one function for each target of `fuzz/`, which must neither panic nor
//! run away, whatever it is given. `tests/corpora.rs` feeds them the committed corpora as plain tests.

use packet::{Checksums, FlowKey, Link, Packet};
use pktio::{Burst, CaptureReader, Port};
use rules::eval::{Alive, Memories, Observer, tables_at, walk};
use rules::model::{Hook, Ruleset};
use rules::save::{LoadOptions, load, print_ruleset};
use rules::{Iface, Transit, World};

/// A target: its name, which is that of its corpus, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] =
    &[("parse", parse), ("capture", capture), ("save", save), ("bpf", bpf), ("rules", rules)];

/// Most bytes that one input may unpack to: gzip and zstd are good at zeros.
const MAX_UNPACKED: usize = 16 << 20;

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

/// A capture file.
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

/// Save text: what loads must print, load again and print the same.
pub fn save(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for strict in [false, true] {
        let options = LoadOptions { table: Some("filter"), strict, ..LoadOptions::default() };
        let Ok(loaded) = load(text, &options) else { continue };
        let family = loaded.ruleset.family;
        let printed = printed(&loaded.ruleset);
        let again = LoadOptions { family: Some(family), ..LoadOptions::default() };
        match load(&printed, &again) {
            Ok(second) => {
                let second = self::printed(&second.ruleset);
                assert_eq!(settled(&second), settled(&printed));
            }
            Err(error) => panic!("printed text does not load: {error}\n{printed}"),
        }
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
        judge(&loaded.ruleset, data.get(split + 1..).unwrap_or_default());
    }
}

/// Save text, then a line `%`, then a packet: the rules judge it at every hook.
pub fn rules(data: &[u8]) {
    let mark = b"\n%\n";
    let split = data.windows(mark.len()).position(|window| window == mark).unwrap_or(data.len());
    let Ok(text) = std::str::from_utf8(&data[..split]) else { return };
    if let Ok(loaded) = load(text, &LoadOptions::default()) {
        judge(&loaded.ruleset, data.get(split + mark.len()..).unwrap_or_default());
    }
}

/// A walk that nobody watches.
struct Nobody;

impl Observer for Nobody {}

/// Judges a bare IP packet at every hook, cut off at a few places.
fn judge(ruleset: &Ruleset, frame: &[u8]) {
    let world = World::default();
    for captured in [frame.len(), frame.len() / 2] {
        let mut memories = Memories::of(ruleset);
        for hook in [Hook::Prerouting, Hook::Input, Hook::Forward, Hook::Output, Hook::Postrouting]
        {
            let mut bytes = frame[..captured].to_vec();
            let mut packet = Packet::parse(&mut bytes, frame.len(), Link::Raw, Checksums::Ignore);
            let mut transit = Transit {
                output: Iface::Named("eth0"),
                time: Some(1),
                ..Transit::new(&mut packet, ruleset.family, hook, &world)
            };
            for table in tables_at(ruleset, hook).collect::<Vec<_>>() {
                walk(ruleset, table, &mut transit, Alive::Certain, &mut memories, &mut Nobody);
            }
        }
    }
}
