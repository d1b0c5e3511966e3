//! README and pages of the book show what the binary prints: their blocks are the snapshots, word for word, and that of
//! the example of embedding is its source. `TAMIS_UPDATE=1` writes them.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Pages with blocks, and what stands in each: a file of this crate, fenced as a language.
const BLOCKS: [(&str, &str, &str); 5] = [
    ("README.md", "tests/snapshots/demo.txt", "text"),
    ("README.md", "tests/snapshots/why-reject.txt", "text"),
    ("README.md", "tests/snapshots/review.txt", "text"),
    ("docs/ci.md", "tests/snapshots/review-test.txt", "text"),
    ("docs/embedding.md", "../replay/examples/embed.rs", "rust"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page(name: &str) -> PathBuf {
    root().join("../..").join(name)
}

/// Where a block stands between its markers.
fn place(page: &str, name: &str) -> Range<usize> {
    let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->"));
    let from = page.find(&begin).expect("the page has the marker") + begin.len();
    from..page.find(&end).expect("the page has the end marker")
}

/// A block of README without its fences.
pub(crate) fn block(name: &str) -> String {
    let readme = fs::read_to_string(page("README.md")).unwrap();
    let lines = readme[place(&readme, name)].lines().filter(|line| !line.starts_with("```"));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn pages_show_what_is_printed() {
    for (name, file, language) in BLOCKS {
        let mut text = fs::read_to_string(page(name)).unwrap();
        let shown = fs::read_to_string(root().join(file)).unwrap();
        let place = place(&text, file.rsplit('/').next().unwrap());
        let block = format!("```{language}\n{shown}```\n");
        if std::env::var_os("TAMIS_UPDATE").is_some() {
            text.replace_range(place, &block);
            fs::write(page(name), text).unwrap();
        } else {
            assert_eq!(&text[place], block, "{name}: TAMIS_UPDATE=1 cargo test -p tamis readme");
        }
    }
}
