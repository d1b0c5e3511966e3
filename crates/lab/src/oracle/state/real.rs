//! [`compare_dir`]: conversations under rulesets of the wild, state and translations included.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use fastrand::Rng;
use rules::save::{LoadOptions, load};

use super::trial::Trial;
use super::{BATCH, Spoken, shrink};
use crate::oracle::real::{Refused, each_file};
use crate::real::whole::whole;
use crate::state::real::{pairs, stage};
use crate::state::stage::Stage;
use crate::state::summary::{Heard, StateFailure};
use crate::state::talk::{Ports, Talk};

/// Packets for each pair of devices.
const PACKETS: usize = 600;
/// Ruleset sizes above which a difference is told without being made small.
const MOST_TO_SHRINK: usize = 400;

/// What came of one file.
#[derive(Debug, Clone, Default)]
pub struct RealTalk {
    /// Its name.
    pub name: String,
    /// Rules that were loaded into both.
    pub kept: usize,
    /// Rules left out, by what they depend on.
    pub left_out: BTreeMap<String, usize>,
    /// Pairs of devices.
    pub pairs: usize,
    /// Packets, and what tamis answered.
    pub heard: Heard,
    /// Why verdicts were unknown, and how often.
    pub unknown: BTreeMap<String, u64>,
    /// Differences, at most one for each pair of devices.
    pub failures: Vec<StateFailure>,
}

/// Compares every `.save` file of a directory that tamis loads; those that it refuses come second, with why.
pub fn compare_dir(dir: &Path, seed: u64) -> io::Result<(Vec<RealTalk>, Vec<Refused>)> {
    each_file(dir, |name, text| compare_file(name, text, seed))
}

/// Compares one ruleset; `Err` is why tamis does not load it.
pub fn compare_file(name: &str, text: &str, seed: u64) -> io::Result<Result<RealTalk, String>> {
    let ruleset = match load(text, &LoadOptions::default()) {
        Ok(loaded) => loaded.ruleset,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let whole = whole(&ruleset);
    let mut file = RealTalk {
        name: name.to_owned(),
        kept: whole.kept,
        left_out: whole.left_out.clone(),
        ..RealTalk::default()
    };
    let rules = whole.rules.text();
    let mut ports = Ports::usual(ruleset.translates());
    ports.servers.extend(&whole.ports);
    let usual = Stage::usual(ruleset.family).scene.devices;
    for (shot, devices) in pairs(&whole, usual).into_iter().enumerate() {
        let seed = seed ^ (shot as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut rng = Rng::with_seed(seed);
        let stage = stage(&whole, ruleset.family, devices, &mut rng);
        let trial = Trial { stage: &stage, rules: &rules, strict: false, batch: BATCH };
        let mut spoken = Spoken::new(Talk::new(seed, stage.clone(), ports.clone()), PACKETS, None);
        let (heard, parting) = trial.run(&mut spoken)?;
        file.pairs += 1;
        file.heard.add(&heard);
        let Some((_, what)) = parting else { continue };
        let refused = what.contains(" refuses ");
        let story = match refused || whole.kept > MOST_TO_SHRINK {
            true => what,
            false => shrink::tell(&stage, false, whole.rules.clone(), spoken.packets, &what)?
                .unwrap_or(what),
        };
        file.failures.push(StateFailure { name: format!("{name} {devices:?}"), story });
        if refused {
            break;
        }
    }
    Ok(Ok(file))
}
