//! [`Session`]: the kernel and tamis with the same rules of nft, fed the same packets, compared.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use conntrack::{dissect, verify};
use dataplane::counters::HitCount;
use packet::{Checksums, L3, L4, Link, Packet, Read, ipv6_ext};
use rules::model::Family;

use super::super::compare::same_addresses;
use super::kernel::{Counted, NftKernel, sentinel};
use super::tamis::{NftSide, config};
use crate::generate::mutate::network_offset;
use crate::generate::nft::ruleset::{Ending, NftRuleset};
use crate::hex::hex;
use crate::scene::{Placement, Scene, Wire, forwards, serial};
use crate::state::evaluator::{Egress, agree};

/// How often at most a packet comes to one rule: by every base chain of its table.
const VISITS: u64 = 8;

/// What is compared, and how strictly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Where packets end.
    pub ending: Ending,
    /// What tamis reads.
    pub reads: Reads,
    /// How packets get in.
    pub wire: Wire,
}

impl Terms {
    /// Where packets get in, and go out.
    #[must_use]
    pub fn scene(self) -> Scene {
        Scene::new(Family::Ipv4, self.wire, Placement::Forward)
    }
}

/// What tamis reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// The commands that nft read.
    Commands,
    /// What `nft list ruleset` prints.
    Listing,
    /// What `nft -j list ruleset` prints.
    Json,
    /// Nothing: the kernel alone is asked.
    Nothing,
}

/// Something on which the kernel and tamis do not agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// tamis does not read the ruleset.
    Load(String),
    /// A packet's verdict or its bytes.
    Packet {
        /// Index of the packet.
        index: usize,
        /// What differs.
        what: String,
    },
    /// A rule's counter.
    Counter(String),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(what) => write!(f, "tamis does not read it: {what}"),
            Self::Packet { index, what } => write!(f, "packet {index}: {what}"),
            Self::Counter(what) => f.write_str(what),
        }
    }
}

/// The kernel and tamis under the same rules.
#[derive(Debug)]
pub struct Session {
    terms: Terms,
    kernel: NftKernel,
    side: Option<NftSide>,
    ruleset: NftRuleset,
    /// Packets of which tamis could not tell everything, by the cause.
    pub unknown: BTreeMap<String, u64>,
    /// Packets that left.
    pub left: u64,
    /// Those of the last batch.
    pub departed: Vec<Vec<u8>>,
    /// Packets of which tamis does not know which chains they came to: any rule may have counted them.
    untold: u64,
}

impl Session {
    /// Loads a ruleset into both, in the calling thread's namespace, which must be fresh. What nft refuses is taken
    /// out of it; `Err` is what tamis refuses, and the ruleset as nft took it.
    pub fn new(
        terms: Terms,
        mut ruleset: NftRuleset,
    ) -> io::Result<(Self, Vec<String>, Option<Difference>)> {
        let kernel = NftKernel::new(terms.wire)?;
        let refusals = kernel.load(&mut ruleset, terms.ending)?;
        let text = match terms.reads {
            Reads::Commands => format!("{}{}", sentinel(terms.ending), ruleset.text()),
            Reads::Listing => kernel.listing(false)?,
            Reads::Json => kernel.listing(true)?,
            Reads::Nothing => String::new(),
        };
        let (side, difference) = match terms.reads {
            Reads::Nothing => (None, None),
            _ => match NftSide::new(&text, &config()?, terms.scene().link()) {
                Ok(side) => (Some(side), None),
                Err(what) => (None, Some(Difference::Load(what))),
            },
        };
        let session = Self {
            terms,
            kernel,
            side,
            ruleset,
            unknown: BTreeMap::new(),
            left: 0,
            departed: Vec::new(),
            untold: 0,
        };
        Ok((session, refusals, difference))
    }

    /// What tamis does not evaluate of the rules, by name.
    #[must_use]
    pub fn lacks(&self) -> &[String] {
        self.side.as_ref().map_or(&[], |side| &side.lacks)
    }

    /// The ruleset as nft took it.
    #[must_use]
    pub fn ruleset(&self) -> &NftRuleset {
        &self.ruleset
    }

    /// The kernel's counters.
    pub fn counters(&self) -> io::Result<Counted> {
        self.kernel.counters()
    }

    /// Feeds both packets with different serial numbers.
    pub fn batch(&mut self, frames: &[Vec<u8>]) -> io::Result<Option<Difference>> {
        let mut ends = Vec::with_capacity(frames.len());
        for frame in frames {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.kernel.send(frame)?;
            let Some(side) = &mut self.side else { continue };
            let end = side.evaluate(frame, now.as_nanos() as u64);
            let unknown = side.unknown(frame);
            self.untold += u64::from(side.is_unwalked());
            ends.push(end);
            if let Some(cause) = unknown {
                *self.unknown.entry(cause).or_default() += 1;
            }
        }
        let difference = match self.terms.ending.leaves() {
            true => self.packets_differ(frames, &ends)?,
            false => None,
        };
        match difference {
            Some(difference) => Ok(Some(difference)),
            None => self.counters_settled(),
        }
    }

    /// How counters differ once packets had time to arrive: a kernel may leave them to `ksoftirqd`, which a busy machine or an
    /// emulated one schedules late.
    fn counters_settled(&self) -> io::Result<Option<Difference>> {
        for millis in [20, 100, 500] {
            if self.counters_differ()?.is_none() {
                return Ok(None);
            }
            thread::sleep(Duration::from_millis(millis));
        }
        self.counters_differ()
    }

    fn packets_differ(
        &mut self,
        frames: &[Vec<u8>],
        ends: &[Egress],
    ) -> io::Result<Option<Difference>> {
        let mut came: Vec<Option<Vec<u8>>> = vec![None; frames.len()];
        let numbers: BTreeMap<u16, usize> = frames
            .iter()
            .enumerate()
            .filter_map(|(at, frame)| Some((serial(self.bare(frame))?, at)))
            .collect();
        self.departed.clear();
        for survivor in self.kernel.survivors()? {
            self.left += 1;
            let Some(&index) = numbers.get(&survivor.serial) else { continue };
            let sent = self.bare(&frames[index]);
            // Of packets that the kernel alone was asked about there are no ends.
            let end = ends.get(index);
            let ours = match end {
                Some(Egress::Packet(Some(ours))) => ours,
                _ => sent,
            };
            // Others are the host's own.
            let may_be_any = matches!(end, None | Some(Egress::Packet(None)));
            if may_be_any
                || same_addresses(ours, &survivor.bytes)
                || same_addresses(sent, &survivor.bytes)
            {
                self.departed.push(survivor.bytes.clone());
                came[index] = Some(survivor.bytes);
            }
        }
        let found = ends.iter().zip(came).enumerate().find_map(|(index, (end, came))| {
            // What was put together leaves as fragments, with the numbers of the first.
            let what = packet_differs(end, came.as_deref())
                .filter(|_| !is_fragment(self.bare(&frames[index])))?;
            Some(Difference::Packet { index, what })
        });
        Ok(found)
    }

    /// A frame from its network header on.
    fn bare<'f>(&self, frame: &'f [u8]) -> &'f [u8] {
        frame.get(network_offset(self.terms.scene(), frame)..).unwrap_or_default()
    }

    fn counters_differ(&self) -> io::Result<Option<Difference>> {
        let Some(side) = &self.side else { return Ok(None) };
        let (kernel, ours) = (self.kernel.counters()?, side.counters());
        for (key, rules) in &kernel {
            let (family, table, chain) = key;
            let empty = Vec::new();
            let tamis = ours.get(key).unwrap_or(&empty);
            for (r, theirs) in rules.iter().enumerate() {
                let parts = tamis.get(r).unwrap_or(&empty_parts()).clone();
                let place = format!("{family} {table} {chain} rule {}", r + 1);
                // What tamis does not count exactly it names.
                if parts.len() != theirs.len() {
                    continue;
                }
                for (c, (ours, theirs)) in parts.iter().zip(theirs).enumerate() {
                    let ours = HitCount { maybe: ours.maybe + self.untold * VISITS, ..*ours };
                    if !agree(&ours, theirs) {
                        let (packets, bytes, maybe) = (ours.packets, ours.bytes, ours.maybe);
                        let what = format!(
                            "{place} counter {}: tamis [{packets}:{bytes}] and {maybe} maybe, kernel {theirs}; the last packet: {}",
                            c + 1,
                            side.verdict()
                        );
                        return Ok(Some(Difference::Counter(what)));
                    }
                }
            }
        }
        Ok(None)
    }
}

fn empty_parts() -> Vec<HitCount> {
    Vec::new()
}

fn packet_differs(end: &Egress, came: Option<&[u8]>) -> Option<String> {
    match (end, came) {
        (Egress::Unknown, _) | (Egress::Nothing, None) | (Egress::Packet(None), Some(_)) => None,
        (Egress::Packet(Some(ours)), Some(came)) if ours == came => None,
        (Egress::Packet(Some(ours)), Some(came)) => {
            Some(format!("tamis sends {}, kernel {}", hex(ours), hex(came)))
        }
        (Egress::Packet(_), None) => Some("tamis accept, kernel drop".to_owned()),
        (Egress::Nothing, Some(_)) => Some("tamis drop, kernel accept".to_owned()),
    }
}

/// Feeds packets in a namespace of their own, those from `from` on one by one, up to the first that makes a difference.
pub fn locate(
    terms: Terms,
    ruleset: &NftRuleset,
    frames: &[Vec<u8>],
    from: usize,
) -> io::Result<Option<(usize, Difference)>> {
    super::super::netns::in_fresh(|| {
        let (mut session, _, difference) = Session::new(terms, ruleset.clone())?;
        if let Some(difference) = difference {
            return Ok(Some((0, difference)));
        }
        let (before, after) = frames.split_at(from.min(frames.len()));
        if let Some(difference) = session.batch(before)? {
            return Ok(Some((from, difference)));
        }
        for (index, frame) in after.iter().enumerate() {
            if let Some(difference) = session.batch(std::slice::from_ref(frame))? {
                return Ok(Some((from + index, difference)));
            }
        }
        Ok(None)
    })
}

fn is_fragment(frame: &[u8]) -> bool {
    let (mut bytes, len) = (frame.to_vec(), frame.len());
    let packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
    match packet.headers().l3 {
        L3::Ipv4 { .. } => !matches!(packet.net::<2>(6), Read::Known([0 | 0x40 | 0x80 | 0xc0, 0])),
        _ => {
            !matches!(ipv6_ext::find(&packet, 0, Some(ipv6_ext::FRAGMENT)), ipv6_ext::Find::Missing)
        }
    }
}

/// Whether an SCTP packet has no checksum: left to the card, as a length of 0.
fn lacks_sctp_sum(packet: &Packet<'_>) -> bool {
    match packet.headers().l4 {
        L4::Upper(upper) if upper.protocol == 132 => {
            matches!(packet.upper::<4>(&upper, 8), Read::Known([0, 0, 0, 0]))
        }
        _ => false,
    }
}

/// Whether the checksum is the sum of the pseudo header alone: left to the card.
fn is_unfinished(packet: &Packet<'_>) -> bool {
    let Ok(layer) = dissect::layer(packet) else { return false };
    let at = match layer.protocol {
        6 => 16,
        17 => 6,
        58 => 2,
        _ => return false,
    };
    let len = packet.headers().end.saturating_sub(layer.offset);
    let stored = packet.read::<2>(layer.offset + at).known().map(u16::from_be_bytes);
    let is_sum = |len| stored.is_some() && verify::pseudo(packet, &layer, len).known() == stored;
    is_sum(len) || is_sum(0)
}

/// Whether what becomes of a packet is compared: not where its length or its checksum is 0, or its checksum is not finished (in a
/// capture its card was to write them, on a wire they are wrong), nor with options where [`Ending::Kept`] says so, nor where it is somebody else's frame.
#[must_use]
pub fn is_compared(terms: Terms, frame: &[u8]) -> bool {
    let (mut bytes, len, scene) = (frame.to_vec(), frame.len(), terms.scene());
    let packet = Packet::parse(&mut bytes, len, scene.link(), Checksums::Ignore);
    if scene.input(&packet).is_none() {
        return false;
    }
    if terms.ending.leaves() && !forwards(&packet) {
        return false;
    }
    let headers = packet.headers();
    let has_options = matches!(headers.l3, L3::Ipv4 { header_len } if header_len != 20);
    let is_left = headers.offload || lacks_sctp_sum(&packet) || is_unfinished(&packet);
    !(is_left || terms.ending == Ending::Kept && has_options)
}
