//! What docs/supported.md says of nft is what the lowering does, word for word. `TAMIS_UPDATE=1` writes it.

use std::path::PathBuf;

use nft::lower::{Supported, supported};

const BEGIN: &str = "<!-- nft: begin -->\n";
const END: &str = "<!-- nft: end -->";

/// Names of what is evaluated, or is not, by what it belongs to.
fn listed(all: &[Supported], evaluated: bool) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for one in all.iter().filter(|one| one.evaluated == evaluated) {
        match groups.iter_mut().find(|(of, _)| *of == one.of) {
            Some((_, names)) => names.push(&one.name),
            None => groups.push((one.of, vec![&one.name])),
        }
    }
    let group = |(of, names): &(&str, Vec<&str>)| format!("| {of} | {} |\n", names.join(", "));
    groups.iter().map(group).collect()
}

fn generated() -> String {
    let all = supported();
    format!(
        "| evaluated | |\n|---|---|\n{}\n| unknown by name | |\n|---|---|\n{}",
        listed(&all, true),
        listed(&all, false)
    )
}

#[test]
fn the_page_lists_what_is_evaluated() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/supported.md");
    let text = std::fs::read_to_string(&path).expect("the page");
    let begin = text.find(BEGIN).expect("the page has the begin marker") + BEGIN.len();
    let end = text.find(END).expect("the page has the end marker");
    if std::env::var_os("TAMIS_UPDATE").is_some() {
        let updated = format!("{}{}{}", &text[..begin], generated(), &text[end..]);
        std::fs::write(&path, updated).expect("the page");
        return;
    }
    assert_eq!(
        &text[begin..end],
        generated(),
        "run TAMIS_UPDATE=1 cargo test -p tamis-nft --test supported"
    );
}
