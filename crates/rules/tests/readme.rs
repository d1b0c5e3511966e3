//! README's list of what is supported is the code's own tables, word for word. `TAMIS_UPDATE=1` writes it.

use std::path::PathBuf;

use rules::ext::{Support, supported};
use rules::model::Family;

const BEGIN: &str = "<!-- supported: begin -->\n";
const END: &str = "<!-- supported: end -->";

fn names(support: Support, kind: &str) -> String {
    let list: Vec<String> = supported()
        .into_iter()
        .filter(|entry| entry.support == support && entry.name.starts_with(kind))
        .map(|entry| {
            let name = entry.name[3..].to_owned();
            match entry.families.as_slice() {
                [Family::Ipv4] => format!("{name} (IPv4)"),
                [Family::Ipv6] => format!("{name} (IPv6)"),
                _ => name,
            }
        })
        .collect();
    list.join(", ")
}

fn generated() -> String {
    format!(
        "**Evaluated** as the kernel does: `-s -d -i -o -p -f`, `-j` and `-g` to chains, ACCEPT DROP RETURN;\n\
         matches {}; targets {}.\n\n\
         **Read and printed, but not evaluated** (what hangs on them is `unknown`): matches {}; targets {};\n\
         any other match, and the targets of xtables-addons.\n",
        names(Support::Evaluated, "-m"),
        names(Support::Evaluated, "-j"),
        names(Support::Parsed, "-m"),
        names(Support::Parsed, "-j"),
    )
}

#[test]
fn readme_lists_what_the_tables_hold() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let begin = text.find(BEGIN).expect("README has the begin marker") + BEGIN.len();
    let end = text.find(END).expect("README has the end marker");
    if std::env::var_os("TAMIS_UPDATE").is_some() {
        let updated = format!("{}{}{}", &text[..begin], generated(), &text[end..]);
        std::fs::write(&path, updated).unwrap();
        return;
    }
    assert_eq!(
        &text[begin..end],
        generated(),
        "run TAMIS_UPDATE=1 cargo test -p tamis-rules --test readme"
    );
}
