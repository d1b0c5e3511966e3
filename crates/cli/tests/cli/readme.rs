//! README shows what the binary prints: its blocks are the snapshots, word for word. `TAMIS_UPDATE=1`
//! writes them.

use std::ops::Range;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn readme() -> PathBuf {
    root().join("../../README.md")
}

/// Where a block stands between its markers.
fn place(readme: &str, name: &str) -> Range<usize> {
    let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->"));
    let from = readme.find(&begin).expect("README has the marker") + begin.len();
    from..readme.find(&end).expect("README has the end marker")
}

/// A block of README without its fences.
pub(crate) fn block(name: &str) -> String {
    let readme = std::fs::read_to_string(readme()).unwrap();
    let lines = readme[place(&readme, name)].lines().filter(|line| !line.starts_with("```"));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn readme_shows_what_is_printed() {
    let mut readme = std::fs::read_to_string(readme()).unwrap();
    for name in ["demo.txt", "why-reject.txt", "review.txt", "review-test.txt"] {
        let snapshot = std::fs::read_to_string(root().join("tests/snapshots").join(name)).unwrap();
        let place = place(&readme, name);
        let block = format!("```text\n{snapshot}```\n");
        if std::env::var_os("TAMIS_UPDATE").is_some() {
            readme.replace_range(place, &block);
        } else {
            assert_eq!(&readme[place], block, "TAMIS_UPDATE=1 cargo test -p tamis readme");
        }
    }
    if std::env::var_os("TAMIS_UPDATE").is_some() {
        std::fs::write(self::readme(), readme).unwrap();
    }
}
