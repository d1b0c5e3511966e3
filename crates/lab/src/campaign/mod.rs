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
use std::path::PathBuf;

use fastrand::Rng;

pub use judge::Played;
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
