//! What becomes of revisions that wait for their confirmation when a run is killed, its disk fails, files change and clocks
//! are set: a run's revisions and journal, without workers, on a disk in memory. Tests and libFuzzer (`fuzz/`, target
//! `pending`) share it; nothing that ships has it.
//!
//! Contract: [`pending`] panics unless, after each step, the rules in force, what waits and for how long, the access list and
//! the sets are what [`Model`] says of what was acknowledged; of a step that the disk failed in, all or nothing is there
//! after the next start.
//!
//! | first byte, mod 16 | second byte | step |
//! |---|---|---|
//! | 0 to 4 | which of [`WAITS`] to wait for a confirmation | rules are applied: of IPv4, IPv6, both; no rules; changes |
//! | 5 | – | confirm |
//! | 6 | revisions back from the last one; 0: the one before | rollback |
//! | 7 | time | time passes, and the run looks after its rules |
//! | 8 | time | time passes |
//! | 9 | time | the wall's clock is set: forward, or back by the next bit |
//! | 10 | family, what it holds | a file changes |
//! | 11 | – | the files are read again |
//! | 12 | – | the run is killed, or the power goes off by the next bit, or it ends in order; and starts again |
//! | 13 | changes | the disk fails for good after these |
//! | 14 | changes | the disk fails once after these |
//! | 15 | address | it is banned, or not any longer; a member of the set, or not any longer, by the next bit |

mod model;
mod scene;

use scene::Scene;

/// Steps of one input.
const STEPS: usize = 300;

/// Seconds to wait for a confirmation.
const WAITS: [Option<u64>; 8] =
    [None, Some(60), Some(1), Some(3600), Some(5), Some(600), Some(0), Some(100_000)];

/// Carries out the steps of an input.
pub(crate) fn pending(data: &[u8]) {
    let mut scene = Scene::new();
    for step in data.chunks_exact(2).take(STEPS) {
        let (more, by) = (step[0] >> 4, step[1]);
        match step[0] & 15 {
            what @ 0..=4 => scene.applies(what, more, WAITS[usize::from(by % 8)]),
            5 => scene.confirms(),
            6 => scene.rolls_back(by),
            7 => scene.passes(time(by), true),
            8 => scene.passes(time(by), false),
            9 => scene.sets_clock(time(by), more & 1 == 0),
            10 => scene.changes_file(more & 1 == 0, by),
            11 => scene.reloads(),
            12 => scene.ends(more, by),
            13 => scene.fails(Some(by.into()), None),
            14 => scene.fails(None, Some(by.into())),
            _ => scene.changes_lists(more, by % 8),
        }
        scene.check();
    }
    scene.ends(0, 0);
    // Whatever waits goes back in time.
    scene.passes(3_600_000, true);
    scene.passes(2_000, true);
    scene.settled();
}

/// Milliseconds: up to a bit more than an hour.
fn time(by: u8) -> u64 {
    u64::from(by).pow(2) * 60
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use proptest::prelude::*;

    #[test]
    fn inputs_of_the_fuzzer_do_no_harm() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/pending");
        let mut inputs = 0;
        for entry in fs::read_dir(corpus).expect("there is a corpus") {
            let path = entry.unwrap().path();
            println!("{}", path.display());
            super::pending(&fs::read(path).unwrap());
            inputs += 1;
        }
        assert!(inputs > 0, "the corpus is empty");
    }

    #[test]
    fn bans_that_come_while_files_are_read_again_are_in_force() {
        super::Scene::new().bans_meanwhile();
    }

    proptest! {
        #[test]
        fn bytes_of_anything_are_steps(data in prop::collection::vec(any::<u8>(), 0..400)) {
            super::pending(&data);
        }
    }
}
