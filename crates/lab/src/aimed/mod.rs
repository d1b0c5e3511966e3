//! What `tamis lint` and `tamis diff` say of rulesets of the wild, held to packets that are aimed at it: at and beside the
//! edges of what rules ask for, inside and outside of what was said. One packet that contradicts it fails the campaign.
//!
//! [`findings`] holds what lint finds, [`regions`] what diff says of edits that [`edit`] draws; [`walk`] is a packet
//! through all tables, [`edges`] where packets are looked for.

pub mod edges;
pub mod edit;
pub mod findings;
pub mod regions;
mod report;
pub mod walk;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rules::model::Ruleset;
use rules::save::{LoadOptions, load};

pub use report::{Differed, Found, hold_diff, hold_lint};

/// A ruleset of the wild.
#[derive(Debug)]
pub struct Subject {
    /// Its file's name.
    pub name: String,
    /// Its rules.
    pub ruleset: Ruleset,
}

/// The rulesets of a folder by name, and those of its files that are none, with why.
#[must_use]
pub fn subjects(folder: &Path) -> (Vec<Subject>, Vec<String>) {
    let Ok(files) = folder.read_dir() else { return (Vec::new(), Vec::new()) };
    let mut paths: Vec<_> = files.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "save"));
    paths.sort();
    let (mut subjects, mut refused) = (Vec::new(), Vec::new());
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string());
        let loaded = text.and_then(|text| {
            load(&text, &LoadOptions::default()).map_err(|error| error.to_string())
        });
        match loaded {
            Ok(loaded) => subjects.push(Subject { name, ruleset: loaded.ruleset }),
            Err(error) => refused.push(format!("{name}: {error}")),
        }
    }
    (subjects, refused)
}

/// Does all jobs, some at once: each as soon as a thread is free, in order; `done` hears of each.
fn in_threads<T: Send>(
    threads: usize,
    count: usize,
    job: impl Fn(usize) -> T + Sync,
    done: impl FnMut(usize, T) + Send,
) {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(done));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let result = job(number);
            let mut done = done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            done(number, result);
        }
    };
    thread::scope(|scope| (0..threads.max(1)).for_each(|_| drop(scope.spawn(work))));
}
