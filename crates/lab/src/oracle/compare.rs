//! [`Session`]: the kernel and tamis with the same rules, fed the same frames, compared.
//!
//! After each batch: every packet's verdict (and its mark, or its forwarded bytes), and every rule's and
//! policy's counters. What does not agree is a [`Difference`].

use std::fmt;
use std::io;
use std::thread;
use std::time::Duration;

use host::Host;

use super::kernel::{Kernel, Survivor};
use crate::evaluator::{Evaluated, Evaluator, Fate};
use crate::hex::hex;
use crate::rule_counters::ChainCounters;
use crate::scene::{Placement, Scene, serial};

/// Something on which the kernel and tamis do not agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// One of the two refuses the rules.
    Load(String),
    /// tamis cannot tell, and for generated rules it must.
    Unknown(String),
    /// A packet's verdict.
    Verdict {
        /// Index in the batch.
        frame: usize,
        /// What tamis says.
        tamis: Fate,
        /// Whether it got through the kernel.
        survived: bool,
    },
    /// A surviving packet's mark, or its bytes.
    Survivor {
        /// Index in the batch.
        frame: usize,
        /// What differs.
        what: String,
    },
    /// A rule's or policy's counter.
    Counter(String),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(what) => write!(f, "the rules are not taken: {what}"),
            Self::Unknown(what) => write!(f, "tamis cannot tell: {what}"),
            Self::Verdict { frame, tamis, survived } => {
                let kernel = if *survived { "accept" } else { "drop" };
                write!(f, "frame {frame}: tamis {}, kernel {kernel}", tamis.word())
            }
            Self::Survivor { frame, what } => write!(f, "frame {frame}: {what}"),
            Self::Counter(what) => f.write_str(what),
        }
    }
}

/// The kernel and tamis under the same rules.
#[derive(Debug)]
pub struct Session {
    scene: Scene,
    kernel: Kernel,
    evaluator: Evaluator,
    evaluated: Vec<(Evaluated, Vec<u8>)>,
    /// Index of a frame in the batch, by its serial number.
    by_serial: Vec<u32>,
}

impl Session {
    /// Sets the scene up in the calling thread's namespace and loads the rules into both.
    pub fn new(scene: Scene, rules: &str) -> io::Result<Result<Self, Difference>> {
        let mut kernel = Kernel::new(scene)?;
        let evaluator = match load(&mut kernel, scene, rules) {
            Ok(evaluator) => evaluator,
            Err(difference) => return Ok(Err(difference)),
        };
        let by_serial = vec![u32::MAX; 1 << 16];
        Ok(Ok(Self { scene, kernel, evaluator, evaluated: Vec::new(), by_serial }))
    }

    /// Loads other rules into both; counters and states start anew.
    pub fn reload(&mut self, rules: &str) -> Result<(), Difference> {
        self.evaluator = load(&mut self.kernel, self.scene, rules)?;
        Ok(())
    }

    /// What tamis is told of the host, until other rules are loaded, where that is more than the scene says.
    pub fn stand_on(&mut self, host: Host) {
        self.evaluator.stand_on(host);
    }

    /// Where it plays.
    #[must_use]
    pub fn scene(&self) -> Scene {
        self.scene
    }

    /// tamis's side.
    #[must_use]
    pub fn evaluator(&self) -> &Evaluator {
        &self.evaluator
    }

    /// What tamis did with each frame of the last batch.
    pub fn fates(&self) -> impl Iterator<Item = Evaluated> + '_ {
        self.evaluated.iter().map(|(evaluated, _)| *evaluated)
    }

    /// Feeds both a batch of frames with different serial numbers.
    pub fn batch(&mut self, frames: &[Vec<u8>]) -> io::Result<Option<Difference>> {
        self.evaluated.resize_with(frames.len(), || {
            (Evaluated { fate: Fate::Stack, mark: 0, network: 0 }, Vec::new())
        });
        for (frame, (evaluated, rewritten)) in frames.iter().zip(&mut self.evaluated) {
            self.kernel.send(frame)?;
            rewritten.clear();
            rewritten.extend_from_slice(frame);
            *evaluated = self.evaluator.evaluate(rewritten);
        }
        let survivors = self.kernel.survivors()?;
        if let Some(what) = self.evaluator.unknown() {
            return Ok(Some(Difference::Unknown(what.to_owned())));
        }
        if let Some(difference) = self.compare_survivors(frames, &survivors) {
            return Ok(Some(difference));
        }
        let difference = self.compare_counters()?;
        if difference.is_none() {
            return Ok(None);
        }
        // On a busy machine a softirq may still be under way.
        thread::sleep(Duration::from_millis(20));
        self.compare_counters()
    }

    fn compare_survivors(
        &mut self,
        frames: &[Vec<u8>],
        survivors: &[Survivor],
    ) -> Option<Difference> {
        self.by_serial.fill(u32::MAX);
        for (index, frame) in frames.iter().enumerate() {
            let (evaluated, _) = &self.evaluated[index];
            if let Some(number) = frame.get(evaluated.network..).and_then(serial) {
                self.by_serial[usize::from(number)] = index as u32;
            }
        }
        let mut survived = vec![false; frames.len()];
        for survivor in survivors {
            let index = self.by_serial[usize::from(survivor.serial)] as usize;
            let Some((evaluated, rewritten)) = self.evaluated.get(index) else { continue };
            let sent = &rewritten[evaluated.network..];
            if !same_addresses(sent, &survivor.bytes) {
                // An ICMP error or a reset that a REJECT sent.
                continue;
            }
            survived[index] = true;
            if evaluated.fate == Fate::Accept
                && let Some(what) = self.survivor_differs(evaluated, sent, survivor)
            {
                return Some(Difference::Survivor { frame: index, what });
            }
        }
        let verdicts = self.evaluated.iter().zip(&survived).enumerate();
        let mut wrong = verdicts.filter(|(_, ((evaluated, _), survived))| {
            (evaluated.fate == Fate::Accept) != **survived
        });
        wrong.next().map(|(frame, ((evaluated, _), survived))| Difference::Verdict {
            frame,
            tamis: evaluated.fate,
            survived: *survived,
        })
    }

    fn survivor_differs(
        &self,
        evaluated: &Evaluated,
        sent: &[u8],
        got: &Survivor,
    ) -> Option<String> {
        if let Some(mark) = got.mark {
            let differs = mark != evaluated.mark;
            return differs.then(|| format!("mark {:#x}, kernel {mark:#x}", evaluated.mark));
        }
        let same = self.scene.placement != Placement::Forward || sent.starts_with(&got.bytes);
        (!same).then(|| format!("bytes {}, kernel {}", hex(sent), hex(&got.bytes)))
    }

    fn compare_counters(&mut self) -> io::Result<Option<Difference>> {
        let kernel = self.kernel.counters()?;
        for ChainCounters { name: (table, chain), entries, built_in } in self.evaluator.counters() {
            let found = kernel.iter().find(|(t, c, _)| table == *t && *c == chain);
            let Some((_, _, theirs)) = found else {
                return Ok(Some(Difference::Counter(format!("{table} {chain}: no such chain"))));
            };
            let compared = if built_in { entries.len() } else { entries.len() - 1 };
            for (index, (ours, theirs)) in entries.iter().zip(theirs).take(compared).enumerate() {
                if ours != theirs {
                    let number = index + 1;
                    let what = format!("{table} {chain} {number}: tamis {ours}, kernel {theirs}");
                    return Ok(Some(Difference::Counter(what)));
                }
            }
        }
        Ok(None)
    }

    /// The kernel's side.
    pub fn kernel(&mut self) -> &mut Kernel {
        &mut self.kernel
    }
}

fn load(kernel: &mut Kernel, scene: Scene, rules: &str) -> Result<Evaluator, Difference> {
    kernel.load(rules).map_err(|error| Difference::Load(format!("kernel: {error}")))?;
    Evaluator::new(scene, rules).map_err(|error| Difference::Load(format!("tamis: {error}")))
}

pub(super) fn same_addresses(a: &[u8], b: &[u8]) -> bool {
    let range = if a.first().is_some_and(|first| first >> 4 == 6) { 8..40 } else { 12..20 };
    a.get(range.clone()) == b.get(range)
}

/// Feeds the frames one by one, in a namespace of their own, up to the first that makes a difference.
pub fn locate(
    scene: Scene,
    rules: &str,
    frames: &[Vec<u8>],
) -> io::Result<Option<(usize, Difference)>> {
    super::netns::in_fresh(|| {
        let mut session = match Session::new(scene, rules)? {
            Ok(session) => session,
            Err(difference) => return Ok(Some((0, difference))),
        };
        for (index, frame) in frames.iter().enumerate() {
            if let Some(difference) = session.batch(std::slice::from_ref(frame))? {
                return Ok(Some((index, difference)));
            }
        }
        Ok(None)
    })
}
