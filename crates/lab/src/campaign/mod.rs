//! A campaign against the built binary: rules, captures and options that are drawn from a seed and changed, each replayed in
//! several ways that have to agree.
//!
//! Contract: a seed is one case, the same each time over the same [`Materials`]. Each run of the binary has a bound of memory
//! and of time. A case that fails is kept in a folder of its own, with what was wrong and every command line.

mod draw;
mod judge;
mod materials;
mod run;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fastrand::Rng;

pub use materials::Materials;

/// What it is played with.
#[derive(Debug)]
pub struct Campaign {
    /// The program.
    pub tamis: PathBuf,
    /// What cases are made of.
    pub materials: Materials,
    /// Where a case's files lie while it is played, and those of failing cases afterwards.
    pub folder: PathBuf,
}

/// What came of a case that went well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Played {
    /// It was replayed: so many packets.
    Replayed(u64),
    /// It was refused, in one line.
    Refused,
}

impl Campaign {
    /// Plays the case of a seed.
    ///
    /// # Errors
    /// What is wrong, and where the case is kept; or its files cannot be written.
    pub fn play(&self, seed: u64) -> io::Result<Result<Played, String>> {
        let folder = self.folder.join(seed.to_string());
        fs::create_dir_all(&folder)?;
        let case = draw::case(&mut Rng::with_seed(seed), &self.materials);
        let mut runs = run::Runs::new(&self.tamis, &folder);
        case.write(&folder)?;
        match judge::judge(&case, &mut runs) {
            Ok(played) => {
                fs::remove_dir_all(&folder)?;
                Ok(Ok(played))
            }
            Err(wrong) => {
                let said = format!("seed {seed}, in {}: {wrong}", folder.display());
                fs::write(folder.join("wrong"), format!("{said}\n{}", runs.commands()))?;
                Ok(Err(said))
            }
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
