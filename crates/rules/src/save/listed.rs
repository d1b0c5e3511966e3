//! Rules and tests of nft, in the words in which nft lists them.
//!
//! Source: nft(8).

use crate::ext::Printer;
use crate::family::Family;
use crate::header::{Header, IfaceTest};
use crate::model::Listed;
use crate::names::protocol_name;

/// One rule as `nft add rule` takes it, with its comment and its handle.
pub(super) fn print_listed(table: &str, chain: &str, listed: &Listed) -> String {
    let mut text = format!("{table} {chain} {}", listed.text);
    if let Some(comment) = &listed.comment {
        text.push_str(&format!(" comment \"{comment}\""));
    }
    if let Some(handle) = listed.handle {
        text.push_str(&format!(" # handle {handle}"));
    }
    text
}

/// The tests that need no extension.
pub(crate) fn print_listed_header(header: &Header, family: Family, to: &mut Printer) {
    let unless = |invert: bool| if invert { "!= " } else { "" };
    let ip = family.name();
    for (name, address) in [("saddr", header.source()), ("daddr", header.destination())] {
        if let Some(address) = address {
            let text = address.text(family);
            let text = text.strip_suffix("/32").or(text.strip_suffix("/128")).unwrap_or(&text);
            to.word(format!("{ip} {name} {}{text}", unless(address.invert)));
        }
    }
    let iface = |name: &str, test: Option<&IfaceTest>, to: &mut Printer| {
        if let Some(test) = test {
            let any = if test.prefix { "*" } else { "" };
            to.word(format!("{name} {}\"{}{any}\"", unless(test.invert), test.name));
        }
    };
    iface("iifname", header.input(), to);
    iface("oifname", header.output(), to);
    if let Some(test) = header.protocol() {
        let name = protocol_name(test.number).map_or(test.number.to_string(), str::to_owned);
        to.word(format!("meta l4proto {}{name}", unless(test.invert)));
    }
}
