//! Public rulesets and the tests of nftables, read and printed: what docs/conformance-nft.md counts is counted here.
//! They are in the shared data next to the checkout, and need tar with xz; without them the tests say so and pass.
//! `NFT_SHOW=1` prints each failure.

mod dumps;
mod lines;
mod listings;
mod lowered;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The archives, unpacked; `None` where they are not.
pub(crate) fn data() -> Option<&'static Path> {
    static DATA: OnceLock<Option<PathBuf>> = OnceLock::new();
    DATA.get_or_init(unpack).as_deref()
}

fn unpack() -> Option<PathBuf> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/nft");
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nft-corpus");
    if !from.is_dir() {
        eprintln!("SKIPPED: public nft rulesets: there is no ../shared/data/nft");
        return None;
    }
    std::fs::create_dir_all(&to).expect("a folder for the data");
    for name in ["nftables", "firewall4", "moby", "proxmox"] {
        let archive = from.join(format!("{name}.tar.xz"));
        let done = Command::new("tar").arg("-xJf").arg(&archive).arg("-C").arg(&to).status();
        assert!(done.is_ok_and(|status| status.success()), "tar -xJf {}", archive.display());
    }
    Some(to)
}

/// Shows a failure, where asked to.
pub(crate) fn show(what: impl FnOnce() -> String) {
    if std::env::var_os("NFT_SHOW").is_some() {
        println!("{}", what());
    }
}

/// Every file below a folder with an ending, sorted.
pub(crate) fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// What `include` says where there are no files.
pub(crate) fn no_files(pattern: &str) -> Result<Vec<(String, String)>, String> {
    Err(format!("no file {pattern} here"))
}

/// The page's line that begins with these words, with this count.
pub(crate) fn page_says(line: &str) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/conformance-nft.md");
    let page = std::fs::read_to_string(page).unwrap_or_default();
    assert!(page.contains(line), "docs/conformance-nft.md does not say: {line}");
}
