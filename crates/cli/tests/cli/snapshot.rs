//! Texts that are expected word for word. `TAMIS_UPDATE=1` takes what is printed now as what is expected from
//! now on.

use std::fs;
use std::path::Path;

/// Compares with a file of `tests/snapshots`.
pub(crate) fn matches_snapshot(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
    if std::env::var_os("TAMIS_UPDATE").is_some() {
        fs::write(&file, text).unwrap();
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        text == expected,
        "differs from {name} (TAMIS_UPDATE=1 takes it):\n{text}\n-- expected:\n{expected}"
    );
}
