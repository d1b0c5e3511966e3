//! The figures of docs/figures are those of the documents beside them, as the code draws them now, and each is shown in
//! docs/studies*.md with `tamis` or a name of ours in it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lab::bench::{Recorded, pictures};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn files(dir: &Path, ending: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("a file"));
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.ends_with(ending)).collect()
}

#[test]
fn figures_are_those_of_their_documents() {
    let (kept, drawn) = (docs().join("figures"), tempfile::tempdir().unwrap());
    for document in files(&kept, ".json") {
        let text = std::fs::read_to_string(kept.join(&document)).unwrap();
        let recorded = Recorded::from_json(&text).unwrap_or_else(|why| panic!("{document}: {why}"));
        pictures::draw(&recorded, drawn.path()).unwrap();
    }
    let both =
        |dir: &Path| [".svg", ".md"].into_iter().flat_map(|ending| files(dir, ending)).collect();
    let names: BTreeSet<String> = both(drawn.path());
    assert_eq!(names, both(&kept), "make figures");
    for name in names {
        let [new, old] = [drawn.path(), &kept].map(|dir| std::fs::read(dir.join(&name)).unwrap());
        assert!(new == old, "{name} is not what its document draws: make figures");
    }
}

#[test]
fn every_figure_is_shown_with_ours_in_it() {
    let pages: Vec<_> =
        files(&docs(), ".md").into_iter().filter(|name| name.starts_with("studies")).collect();
    let page = |name: &String| std::fs::read_to_string(docs().join(name)).unwrap();
    let text: String = pages.iter().map(page).collect();
    for name in files(&docs().join("figures"), ".svg") {
        assert!(text.contains(&format!("(figures/{name})")), "{name} is shown nowhere");
        let drawn = std::fs::read_to_string(docs().join("figures").join(&name)).unwrap();
        // Stripes and settings are those of a published design alone.
        let alone = name.contains("stripes") || name.contains("settings");
        let ours = ["tamis", "packed_chain"].iter().any(|ours| drawn.contains(ours));
        assert!(alone || ours, "{name}: nothing of ours");
    }
}
