//! Every ruleset of the shared test data loads, or is refused at the line that deserves it.
//!
//! The data lies next to the repository and is not part of it; without it the tests say so and pass.

use std::path::PathBuf;

use rules::save::{LoadOptions, load};

fn rulesets() -> Option<PathBuf> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/rulesets");
    if !dir.is_dir() {
        eprintln!("SKIPPED: {} is not here", dir.display());
        return None;
    }
    Some(dir)
}

/// Files that must be refused, and the line at which.
const REFUSED: [(&str, u32); 2] = [("openwrt-AA.save", 1), ("isabelle-parser-test-v4.save", 12)];

#[test]
fn every_ruleset_loads_or_is_refused_at_its_line() {
    let Some(dir) = rulesets() else { return };
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ext| ext != "save") {
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let refused = REFUSED.iter().find(|(file, _)| *file == name).map(|(_, line)| *line);
        match (load(&text, &LoadOptions::default()), refused) {
            (Ok(loaded), None) => assert!(loaded.ruleset.rule_count() > 0, "{name}"),
            (Err(error), Some(line)) => assert_eq!(error.line, line, "{name}: {error}"),
            (Ok(_), Some(line)) => wrong.push(format!("{name}: not refused at line {line}")),
            (Err(error), None) => wrong.push(format!("{name}:{error}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
