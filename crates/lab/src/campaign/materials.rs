//! [`Materials`]: the rules, captures, sets and hosts that cases are made of.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of a file at most: what is larger would be all that a campaign does.
const MOST: u64 = 512 << 10;

/// What cases are made of, as it lies in files.
#[derive(Debug, Default)]
pub struct Materials {
    /// Save text, by its path.
    pub rules: Vec<(PathBuf, String)>,
    /// Captures.
    pub captures: Vec<(PathBuf, Vec<u8>)>,
    /// What `ipset save` printed.
    pub sets: Vec<String>,
}

impl Materials {
    /// What a checkout has, without anything beside it: the same for everybody.
    #[must_use]
    pub fn of_checkout(root: &Path) -> Self {
        let mut materials = Self::default();
        let folders =
            ["examples", "crates/cli/tests/rules", "crates/replay", "crates/lab/fixtures/programs"];
        for folder in folders {
            materials.add(&root.join(folder));
        }
        materials
    }

    /// Adds the rulesets and captures of a folder of shared data; captures are unpacked into `room`. False where there are
    /// none.
    pub fn add_shared(&mut self, data: &Path, room: &Path) -> bool {
        self.add(&data.join("rulesets"));
        let archive = data.join("captures/tcpdump-tests-pcaps.tar.xz");
        let unpacked = fs::create_dir_all(room).is_ok()
            && archive.exists()
            && Command::new("tar").arg("-xJf").arg(&archive).arg("-C").arg(room).status().is_ok();
        self.add(room);
        unpacked
    }

    fn add(&mut self, folder: &Path) {
        let is_small = |path: &PathBuf| fs::metadata(path).is_ok_and(|it| it.len() <= MOST);
        for path in below(folder, &["ipset.save"]).into_iter().filter(is_small) {
            self.sets.extend(fs::read_to_string(path));
        }
        for path in below(folder, &[".save", ".v4", ".v6"]).into_iter().filter(is_small) {
            let is_rules = !path.ends_with("ipset.save");
            if let Some(text) = fs::read_to_string(&path).ok().filter(|_| is_rules) {
                self.rules.push((path, text));
            }
        }
        for path in below(folder, &[".pcap", ".pcapng", ".pcap.gz"]).into_iter().filter(is_small) {
            self.captures.extend(fs::read(&path).ok().map(|bytes| (path, bytes)));
        }
    }
}

/// Every file below a folder whose name ends so, in the order of their paths; none where there is no folder.
fn below(folder: &Path, ends: &[&str]) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let is_wanted = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        ends.iter().any(|end| name.ends_with(end))
    };
    let files = paths.iter().flat_map(|path| match path.is_dir() {
        true => below(path, ends),
        false => Vec::from_iter(is_wanted(path).then(|| path.clone())),
    });
    files.collect()
}
