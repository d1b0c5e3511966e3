//! The committed fuzzing corpora, and every input that once did harm (`fuzz/corpus/TARGET/crash-*`), fed
//! to their targets, as they are and changed. None may panic.

use std::path::{Path, PathBuf};

use fastrand::Rng;
use lab::fuzz::TARGETS;

/// The inputs of a target, in the order of their names.
fn corpus(name: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let files = std::fs::read_dir(root).expect("every target has a corpus");
    let mut paths: Vec<_> = files.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "the corpus of {name} is empty");
    paths
}

/// Says on a panic what it was about.
struct About(String);

impl Drop for About {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0);
        }
    }
}

#[test]
fn no_input_of_the_corpora_does_harm() {
    for (name, target) in TARGETS {
        for path in corpus(name) {
            let _about = About(path.display().to_string());
            target(&std::fs::read(path).unwrap());
        }
    }
}

/// As libFuzzer changes them, without its coverage: a slice of `make fuzz` for each run of the tests. `TAMIS_FUZZ_CHANGED`
/// says how many of each target, `TAMIS_FUZZ_SEED` by which draws, `TAMIS_FUZZ` of which target alone.
#[test]
fn no_changed_input_does_harm() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let changed: u64 = number("TAMIS_FUZZ_CHANGED").unwrap_or(100);
    let seed: u64 = number("TAMIS_FUZZ_SEED").unwrap_or(1);
    let only = std::env::var("TAMIS_FUZZ").ok();
    for (name, target) in
        TARGETS.iter().filter(|it| only.as_deref().is_none_or(|only| it.0 == only))
    {
        let corpus: Vec<_> = corpus(name).iter().map(|path| std::fs::read(path).unwrap()).collect();
        for round in seed..seed + changed {
            let again = format!("TAMIS_FUZZ={name} TAMIS_FUZZ_SEED={round} TAMIS_FUZZ_CHANGED=1");
            let _about = About(again);
            target(&change(&corpus, &mut Rng::with_seed(round)));
        }
    }
}

/// An input with bytes turned, cut out, doubled, or taken from another one.
fn change(corpus: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut input = corpus[rng.usize(..corpus.len())].clone();
    for _ in 0..rng.usize(1..6) {
        let at = rng.usize(..=input.len());
        let end = (at + rng.usize(..16)).min(input.len());
        match rng.u8(..6) {
            0 => input.truncate(at.max(1)),
            1 => drop(input.drain(at..end)),
            2 => {
                let piece = input[at..end].to_vec();
                input.splice(at..at, piece);
            }
            3 => {
                let other = &corpus[rng.usize(..corpus.len())];
                let from = rng.usize(..=other.len());
                let to = (from + rng.usize(..64)).min(other.len());
                input.splice(at..end, other[from..to].iter().copied());
            }
            _ => input[at..end].iter_mut().take(3).for_each(|byte| *byte = rng.u8(..)),
        }
    }
    input
}
