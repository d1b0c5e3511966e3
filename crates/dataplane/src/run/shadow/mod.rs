//! [`Shadow`]: other rules, by which the frames of a run are evaluated beside those in force, and which act on nothing. What
//! they decide otherwise is counted by pairs: what decided in force, and what would have.
//!
//! Contract: a worker evaluates a copy of each frame by the shadow right after the frame itself, with connections,
//! memories and sets of the shadow's own; sets start as copies of those in force. What the access list in force denies is not
//! evaluated. A connection that began before the shadow is established for it, for [`GRACE`]. A worker that has had
//! frames in every turn for [`LOADED`] leaves the shadow out until it has had none: its frames are counted as left out, and
//! connections that the shadow has not seen the beginning of by then may differ for that alone, as [`Shadow::json`] says.
//! Nobody waits for it: workers take a lock once for a burst in which something differs. [`MOST`] pairs are kept.

mod pair;
mod shade;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwapOption;
use rules::model::{Family, Ruleset};
use rules::save::{LoadError, LoadOptions, load};
use serde_json::{Value, json};

use super::steering::Steering;
use crate::config::Config;
use crate::publish::Published;

use pair::Pair;
pub(super) use shade::{Shade, Watched};

/// How long a worker has frames without a pause before it leaves the shadow out.
const LOADED: Duration = Duration::from_millis(20);

/// Pairs that are kept; of what comes after them only the number.
const MOST: usize = 256;

/// Rules that are tried.
#[derive(Debug)]
pub(super) struct Shadow {
    published: Published,
    /// Their texts, as they were given.
    texts: Vec<String>,
    since: SystemTime,
    frames: AtomicU64,
    /// Frames that were not evaluated, because a worker had too much to do.
    left_out: AtomicU64,
    differs: Mutex<Pairs>,
}

/// What differs.
#[derive(Debug, Default)]
struct Pairs {
    pairs: Vec<Pair>,
    /// Frames of others.
    others: u64,
}

/// Why rules are not tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refused {
    /// A line of a text, which is counted from 0.
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
pub(super) struct Slot {
    /// Rises with each change, so that workers look at a word that is mostly as it was.
    number: AtomicU64,
    current: ArcSwapOption<Shadow>,
}

impl Slot {
    /// Another shadow, or none, from the next burst on.
    pub(super) fn set(&self, shadow: Option<Arc<Shadow>>) {
        self.current.store(shadow);
        self.number.fetch_add(1, Ordering::Release);
    }

    /// The one that there is.
    pub(super) fn get(&self) -> Option<Arc<Shadow>> {
        self.current.load_full()
    }
}

impl Shadow {
    /// These texts, one for each family that is to have other rules; the other families keep those in force.
    ///
    /// # Errors
    /// One is no rules, or the workers cannot share connections as these need it.
    pub(super) fn new(
        texts: Vec<String>,
        in_force: &Published,
        steering: &Steering,
    ) -> Result<Self, Refused> {
        let mut rulesets: Vec<Arc<Ruleset>> = Vec::new();
        for (at, text) in texts.iter().enumerate() {
            let loaded = load(text, &LoadOptions::default());
            let ruleset = loaded.map_err(|error| Refused::Text(at, error))?.ruleset;
            if rulesets.iter().any(|other| other.family == ruleset.family) {
                let twice = format!("expected one text for {}, found two", ruleset.family.name());
                return Err(Refused::Other(twice));
            }
            rulesets.push(Arc::new(ruleset));
        }
        let program = in_force.program();
        let is_kept = |family: Family| rulesets.iter().all(|given| given.family != family);
        let kept = program.revisions().filter(|revision| is_kept(revision.family()));
        let kept: Vec<_> = kept.map(|revision| Arc::new(revision.ruleset())).collect();
        rulesets.extend(kept);
        steering.suits(&rulesets).map_err(Refused::Other)?;
        let mut config = Config::clone(program.config());
        config.bans = None;
        config.sets = in_force.shared().sets().map(rules::ipset::Sets::copied);
        config.ct.start = None;
        config.ct.grace = 0;
        let published = Published::new(rulesets.iter().map(|rules| &**rules), config);
        Ok(Self {
            published: published.map_err(|refused| Refused::Other(refused.to_string()))?,
            texts,
            since: SystemTime::now(),
            frames: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
            differs: Mutex::default(),
        })
    }

    /// The texts, as they were given.
    pub(super) fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Counts a burst: so many frames, so many left out, and what differs of them.
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

    /// What has been found so far: `tamis.shadow/1`.
    pub(super) fn json(&self) -> Value {
        let kept = self.differs.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pairs: Vec<&Pair> = kept.pairs.iter().collect();
        pairs.sort_by_key(|pair| std::cmp::Reverse(pair.packets));
        let differ = pairs.iter().map(|pair| pair.packets).sum::<u64>() + kept.others;
        let since = self.since.duration_since(UNIX_EPOCH).unwrap_or_default();
        json!({
            "schema": "tamis.shadow/1",
            "active": true,
            "since": since.as_secs(),
            "packets": self.frames.load(Ordering::Relaxed),
            "left_out": self.left_out.load(Ordering::Relaxed),
            "differ": differ,
            "pairs": pairs.into_iter().map(Pair::json).collect::<Vec<_>>(),
            "others": kept.others,
        })
    }
}

#[cfg(test)]
mod tests;
