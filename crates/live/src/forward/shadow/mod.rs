//! [`Shadow`]: candidate rules that evaluate a copy of every frame of a run and affect no traffic. Differing verdicts
//! are counted by pairs: what decided in force, and what would have in shadow.
//!
//! Contract: a worker evaluates a copy of each frame by the shadow right after the frame itself, with connections,
//! memories and sets of the shadow's own; sets and connections start as copies of the ones in force. What the access
//! list in force denies is not evaluated. A worker that has had frames in every turn for [`LOADED`] leaves the shadow
//! out until it has had none: its frames are counted as left out, and connections that the shadow has not seen the
//! beginning of by then may differ for that alone, as [`Shadow::found`] says. No worker waits for it: workers take a
//! lock once for a burst in which something differs. [`MOST`] pairs are kept.

mod pair;
mod worker;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwapOption;
use conntrack::Listing;
use rules::model::{Family, Ruleset};
use rules::save::{LoadError, LoadOptions, load};

use crate::answers::ShadowFindings;
use crate::forward::steering::Steering;
use dataplane::publish::Published;
use dataplane::{Config, Program, Start};

use pair::Pair;
pub(crate) use worker::{ShadowWorker, Watched};

/// How long frames come to a worker without a pause before it leaves the shadow out.
const LOADED: Duration = Duration::from_millis(20);

/// Pairs that are kept; later ones are only counted.
const MOST: usize = 256;

/// Candidate rules and what they would have done.
#[derive(Debug)]
pub(crate) struct Shadow {
    published: Published,
    /// The texts of the rules, as they were given.
    texts: Vec<String>,
    since: SystemTime,
    frames: AtomicU64,
    /// Frames that were not evaluated, because a worker had too much to do.
    left_out: AtomicU64,
    differs: Mutex<Pairs>,
}

/// The differing verdicts.
#[derive(Debug, Default)]
struct Pairs {
    pairs: Vec<Pair>,
    /// Frames of pairs that are not kept.
    others: u64,
}

/// Why a shadow is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    /// A line of a text, whose number is counted from 0.
    Text(usize, LoadError),
    /// Something else.
    Other(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(0, error) => error.fmt(f),
            Self::Text(at, error) => write!(f, "text {}: {error}", at + 1),
            Self::Other(what) => f.write_str(what),
        }
    }
}

/// The shadow of a run, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    /// Rises with each change, so that workers look at a word that is mostly as it was.
    number: AtomicU64,
    current: ArcSwapOption<Shadow>,
}

impl Slot {
    /// Sets another shadow, or none, from the next burst on.
    pub(crate) fn set(&self, shadow: Option<Arc<Shadow>>) {
        self.current.store(shadow);
        self.number.fetch_add(1, Ordering::Release);
    }

    /// The present shadow.
    pub(crate) fn get(&self) -> Option<Arc<Shadow>> {
        self.current.load_full()
    }
}

impl Shadow {
    /// Makes a shadow of these texts, one for each family that is to have other rules; the other families keep the
    /// rules in force. `complete` adds the tables that the run itself has. It starts with these connections.
    ///
    /// # Errors
    /// A text is refused, or the workers cannot share connections as these rules need it.
    pub(crate) fn new(
        texts: Vec<String>,
        connections: Listing,
        in_force: &Published,
        steering: &Steering,
        complete: impl FnOnce(&mut Vec<Ruleset>, &Program),
    ) -> Result<Self, Refused> {
        let mut rulesets: Vec<Ruleset> = Vec::new();
        for (at, text) in texts.iter().enumerate() {
            let loaded = load(text, &LoadOptions::default());
            let ruleset = loaded.map_err(|error| Refused::Text(at, error))?.ruleset;
            if rulesets.iter().any(|other| other.family == ruleset.family) {
                let twice = format!("expected one text for {}, found two", ruleset.family.name());
                return Err(Refused::Other(twice));
            }
            rulesets.push(ruleset);
        }
        let program = in_force.program();
        complete(&mut rulesets, &program);
        let mut rulesets: Vec<Arc<Ruleset>> = rulesets.into_iter().map(Arc::new).collect();
        let is_kept = |family: Family| rulesets.iter().all(|given| given.family != family);
        let kept = program.revisions().filter(|revision| is_kept(revision.family()));
        let kept: Vec<_> = kept.map(|revision| Arc::new(revision.ruleset())).collect();
        rulesets.extend(kept);
        steering.suits(&rulesets).map_err(Refused::Other)?;
        let mut config = Config::clone(program.config());
        config.ct.grace = 0;
        let sets = in_force.shared().sets().map(rules::ipset::Sets::copied);
        let start = Start { bans: None, sets, connections: Some(Arc::new(connections)) };
        Ok(Self {
            published: Published::counting(rulesets.iter().map(|rules| &**rules), config, start),
            texts,
            since: SystemTime::now(),
            frames: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
            differs: Mutex::default(),
        })
    }

    /// The texts, as they were given, one after the other.
    pub(crate) fn text(&self) -> String {
        self.texts.join("\n")
    }

    /// Counts a burst: its evaluated frames, the frames left out, and the differing verdicts.
    fn add(&self, frames: u64, left_out: u64, found: &mut Vec<Pair>) {
        self.frames.fetch_add(frames, Ordering::Relaxed);
        self.left_out.fetch_add(left_out, Ordering::Relaxed);
        if found.is_empty() {
            return;
        }
        let mut kept = self.differs.lock().unwrap_or_else(PoisonError::into_inner);
        let Pairs { pairs, others } = &mut *kept;
        for new in found.drain(..) {
            let is_room = pairs.len() < MOST;
            match pairs.iter_mut().find(|pair| pair.is_of(&new.sides)) {
                Some(pair) => pair.packets += new.packets,
                None if is_room => pairs.push(new),
                None => *others += new.packets,
            }
        }
    }

    /// What has been found so far.
    pub(crate) fn found(&self) -> ShadowFindings {
        let kept = self.differs.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pairs: Vec<&Pair> = kept.pairs.iter().collect();
        pairs.sort_by_key(|pair| std::cmp::Reverse(pair.packets));
        let differ = pairs.iter().map(|pair| pair.packets).sum::<u64>() + kept.others;
        ShadowFindings {
            since: self.since.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            packets: self.frames.load(Ordering::Relaxed),
            left_out: self.left_out.load(Ordering::Relaxed),
            differ,
            pairs: pairs.into_iter().map(Pair::answer).collect(),
            others: kept.others,
        }
    }
}

#[cfg(test)]
mod tests;
