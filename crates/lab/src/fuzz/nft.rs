//! Rulesets of nftables, text and JSON.

use nft::json::{read, write};
use nft::lower::lower;
use nft::model::Ruleset;
use nft::text::{Printer, parse, print};
use rules::model::Family;

use super::walks::evaluate;

/// A listing or a script of nft, or its JSON: what loads prints, and the print loads and prints as itself, in both
/// languages; and packets walk it. A script includes itself.
pub(super) fn nft(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let itself = |name: &str| Ok(vec![(name.to_owned(), text.to_owned())]);
    if let Ok(ruleset) = parse("fuzz", text, &itself) {
        let printed = print::ruleset(&ruleset, Printer::default());
        let again = parse("printed", &printed, &|name| Err(name.to_owned()));
        let again = again.unwrap_or_else(|error| panic!("{error}\n{printed}"));
        assert_eq!(print::ruleset(&again, Printer::default()), printed);
        let _ = write::ruleset(&ruleset, &mut Printer::default());
        walked(&ruleset);
    }
    if let Ok(ruleset) = read::ruleset(text) {
        let _ = print::ruleset(&ruleset, Printer::default());
        let written = write::ruleset(&ruleset, &mut Printer::default());
        let again = read::ruleset(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
        assert_eq!(write::ruleset(&again, &mut Printer::default()), written);
        walked(&ruleset);
    }
}

/// A SYN to port 80, and a datagram to port 53 over IPv6.
const PACKETS: [(Family, &[u8]); 2] = [
    (
        Family::Ipv4,
        b"\x45\0\0\x2c\0\x01\x40\0\x40\x06\x66\xcb\x0a\0\0\x01\x0a\0\0\x02\xc0\0\0\x50\0\0\0\x01\0\0\0\0\x60\x02\xfa\xf0\0\0\0\0\x02\x04\x05\xb4",
    ),
    (
        Family::Ipv6,
        b"\x60\0\0\0\0\x0c\x11\x40\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x02\xc0\0\0\x35\0\x0c\0\0test",
    ),
];

/// Lowers a ruleset for each family, and walks a packet of it through all hooks, whole and cut off.
fn walked(ruleset: &Ruleset) {
    for (family, packet) in PACKETS {
        evaluate(&lower(ruleset, family).ruleset, packet, None);
    }
}
