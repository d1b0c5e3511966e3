//! Rulesets of nftables, text and JSON.

use nft::json::{read, write};
use nft::text::{Printer, parse, print};

/// A listing or a script of nft, or its JSON: what loads prints, and the print loads and prints as itself, in both
/// languages. A script includes itself.
pub(super) fn nft(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let itself = |name: &str| Ok(vec![(name.to_owned(), text.to_owned())]);
    if let Ok(ruleset) = parse("fuzz", text, &itself) {
        let printed = print::ruleset(&ruleset, Printer::default());
        let again = parse("printed", &printed, &|name| Err(name.to_owned()));
        let again = again.unwrap_or_else(|error| panic!("{error}\n{printed}"));
        assert_eq!(print::ruleset(&again, Printer::default()), printed);
        let _ = write::ruleset(&ruleset, &mut Printer::default());
    }
    if let Ok(ruleset) = read::ruleset(text) {
        let _ = print::ruleset(&ruleset, Printer::default());
        let written = write::ruleset(&ruleset, &mut Printer::default());
        let again = read::ruleset(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
        assert_eq!(write::ruleset(&again, &mut Printer::default()), written);
    }
}
