//! [`StateJudge`]: tamis's side of a conversation, by way of the whole packet path, with counters.

use dataplane::{Arrival, Config, Handler, Judgement, Observer, Path};
use packet::{Checksums, Link};
use rules::conntrack::{self, Mode};
use rules::eval::{self, Cause, RuleRef};
use rules::model::Ruleset;
use rules::{Transit, World};

use super::Sent;
use crate::judge::Fate;
use crate::scene::Scene;
use crate::tally::{ChainTally, Tally, step};

/// The settings under which tamis stands where the kernel does.
#[must_use]
pub fn config() -> Config {
    Config {
        path: Some(Path::Forward),
        checksums: Checksums::Verify,
        ct: conntrack::Config {
            mode: Mode::Kernel,
            checksums: Checksums::Verify,
            ..conntrack::Config::default()
        },
        world: World::default(),
        ..Config::default()
    }
}

/// A ruleset with its connections.
#[derive(Debug)]
pub struct StateJudge<'r> {
    ruleset: &'r Ruleset,
    handler: Handler<'r>,
    tally: Observed,
    number: u64,
}

/// What the walks add up.
#[derive(Debug)]
struct Observed {
    counters: Tally,
    path: Vec<(RuleRef, bool)>,
    unknown: Option<String>,
}

impl<'r> StateJudge<'r> {
    /// With no connections.
    #[must_use]
    pub fn new(ruleset: &'r Ruleset, config: &'r Config) -> Self {
        let tally = Observed { counters: Tally::of(ruleset), path: Vec::new(), unknown: None };
        Self { ruleset, handler: Handler::new([ruleset], config), tally, number: 0 }
    }

    /// What becomes of a packet that arrives at `time`, in nanoseconds since the Unix epoch. Its bytes are
    /// rewritten in place.
    pub fn judge(&mut self, scene: Scene, sent: &mut Sent, time: u64) -> Fate {
        let [near, far] = scene.devices.each_ref().map(|device| Some(device.name()));
        let (input, output) = if sent.from_far { (far, near) } else { (near, far) };
        self.number += 1;
        self.tally.path.clear();
        let arrival = Arrival {
            number: self.number,
            link: Link::Raw,
            wire_len: sent.bytes.len(),
            time: Some(time),
            direction: pktio::Direction::Unknown,
            interface: None,
            input,
            output,
            mark: 0,
            ctstate: None,
        };
        match self.handler.handle(&mut sent.bytes, &arrival, &mut self.tally).judgement {
            Judgement::Accept(_) => Fate::Accept,
            Judgement::Drop(_) | Judgement::Reject(_) => Fate::Drop,
            Judgement::Unknown | Judgement::Skip(_) => Fate::Unknown,
        }
    }

    /// The rules and policies that the last packet hit.
    #[must_use]
    pub fn path(&self) -> Vec<String> {
        self.tally.path.iter().map(|(at, policy)| step(self.ruleset, *at, *policy)).collect()
    }

    /// The first thing that was not known.
    #[must_use]
    pub fn unknown(&self) -> Option<&str> {
        self.tally.unknown.as_deref()
    }

    /// Counters of every chain.
    #[must_use]
    pub fn counters(&self) -> Vec<ChainTally> {
        self.tally.counters.chains(self.ruleset)
    }
}

impl Observed {
    fn count(&mut self, at: RuleRef, policy: bool, transit: &Transit<'_, '_>) {
        self.counters.count(at, transit);
        self.path.push((at, policy));
    }
}

impl eval::Observer for Observed {
    fn hit(&mut self, at: RuleRef, certain: bool, transit: &Transit<'_, '_>) {
        if certain {
            self.count(at, false, transit);
        }
    }

    fn policy(&mut self, table: u32, chain: u32, certain: bool, transit: &Transit<'_, '_>) {
        if certain {
            self.count(self.counters.policy(table, chain), true, transit);
        }
    }

    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        self.unknown.get_or_insert_with(|| format!("{at:?}: {cause:?}"));
    }
}

impl Observer for Observed {}
