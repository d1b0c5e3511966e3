//! The book's list of what is supported (`docs/supported.md`) is the code's own tables, word for word. `TAMIS_UPDATE=1` writes it.

use std::path::PathBuf;

use rules::ext::{Support, supported};
use rules::model::Family;

const BEGIN: &str = "<!-- supported: begin -->\n";
const END: &str = "<!-- supported: end -->";

fn names(support: Support, kind: &str) -> String {
    let list: Vec<String> = supported()
        .into_iter()
        .filter(|entry| entry.support == support && entry.name.starts_with(kind))
        .filter_map(|entry| {
            let name = entry.name[3..].to_owned();
            let families: Vec<Family> =
                entry.families.into_iter().filter(|family| family.is_ip()).collect();
            match families.as_slice() {
                [] => None,
                [Family::Ipv4] => Some(format!("{name} (IPv4)")),
                [Family::Ipv6] => Some(format!("{name} (IPv6)")),
                _ => Some(name),
            }
        })
        .collect();
    list.join(", ")
}

/// Names of one other family, matches or targets; names that are not evaluated say so.
fn others(family: Family, kind: &str) -> String {
    let list: Vec<String> = supported()
        .into_iter()
        .filter(|entry| entry.families.contains(&family) && entry.name.starts_with(kind))
        .map(|entry| match entry.support {
            Support::Evaluated => entry.name[3..].to_owned(),
            Support::Parsed => format!("{} (not evaluated)", &entry.name[3..]),
        })
        .collect();
    list.join(", ")
}

fn generated() -> String {
    format!(
        "**Evaluated** as the kernel does: `-s -d -i -o -p -f`, `-j` and `-g` to chains, ACCEPT DROP RETURN;\n\
         matches {}; targets {}.\n\n\
         **Read and printed, but not evaluated** (what depends on them is `unknown`): matches {}; targets {};\n\
         any other match, and the targets of xtables-addons.\n\n\
         **ARP rules**: addresses, hardware addresses, lengths, operation and types; targets {}.\n\n\
         **Bridge rules**: addresses, EtherType, ports and bridges; matches {}; targets {}, ACCEPT DROP CONTINUE RETURN.\n",
        names(Support::Evaluated, "-m"),
        names(Support::Evaluated, "-j"),
        names(Support::Parsed, "-m"),
        names(Support::Parsed, "-j"),
        others(Family::Arp, "-j"),
        others(Family::Bridge, "-m"),
        others(Family::Bridge, "-j"),
    )
}

#[test]
fn the_page_lists_what_the_tables_hold() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/supported.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let begin = text.find(BEGIN).expect("the page has the begin marker") + BEGIN.len();
    let end = text.find(END).expect("the page has the end marker");
    if std::env::var_os("TAMIS_UPDATE").is_some() {
        let updated = format!("{}{}{}", &text[..begin], generated(), &text[end..]);
        std::fs::write(&path, updated).unwrap();
        return;
    }
    assert_eq!(
        &text[begin..end],
        generated(),
        "run TAMIS_UPDATE=1 cargo test -p tamis-rules supported"
    );
}
