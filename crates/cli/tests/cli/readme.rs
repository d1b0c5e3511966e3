//! README shows what the binary prints: its blocks are the snapshots, word for word. `TAMIS_UPDATE=1`
//! writes them.

use std::path::Path;

#[test]
fn readme_shows_what_is_printed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("../../README.md");
    let mut readme = std::fs::read_to_string(&path).unwrap();
    for name in ["demo.txt", "why-reject.txt"] {
        let snapshot = std::fs::read_to_string(root.join("tests/snapshots").join(name)).unwrap();
        let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->"));
        let from = readme.find(&begin).expect("README has the marker") + begin.len();
        let to = readme.find(&end).expect("README has the end marker");
        let block = format!("```text\n{snapshot}```\n");
        if std::env::var_os("TAMIS_UPDATE").is_some() {
            readme.replace_range(from..to, &block);
        } else {
            assert_eq!(&readme[from..to], block, "TAMIS_UPDATE=1 cargo test -p tamis-cli readme");
        }
    }
    if std::env::var_os("TAMIS_UPDATE").is_some() {
        std::fs::write(&path, readme).unwrap();
    }
}
