//! [`Heard`]: what a campaign of conversations adds up to.

use super::evaluator::Egress;

/// Rulesets and packets compared, and what tamis answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Heard {
    /// Rulesets.
    pub rulesets: u64,
    /// Packets.
    pub packets: u64,
    /// Packets that came out of the kernel.
    pub came: u64,
    /// Packets whose verdict tamis knew.
    pub certain: u64,
    /// Of the packets that went on, those of which tamis knew every byte.
    pub bytes_known: u64,
    /// Packets of which it is not known to a clock tick when the kernel saw them: the machine was busy.
    pub late: u64,
}

impl Heard {
    /// Counts a packet.
    pub fn note(&mut self, egress: &Egress, came: bool) {
        self.packets += 1;
        self.came += u64::from(came);
        self.certain += u64::from(*egress != Egress::Unknown);
        self.bytes_known += u64::from(matches!(egress, Egress::Packet(Some(_))));
    }

    /// Adds another campaign's.
    pub fn add(&mut self, other: &Self) {
        self.rulesets += other.rulesets;
        self.packets += other.packets;
        self.came += other.came;
        self.certain += other.certain;
        self.bytes_known += other.bytes_known;
        self.late += other.late;
    }

    /// Share of packets whose verdict was certain, in percent.
    #[must_use]
    pub fn certain_share(&self) -> f64 {
        100.0 * self.certain as f64 / self.packets.max(1) as f64
    }
}

/// A difference, with what led to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFailure {
    /// What ruleset: its number, or the name of its file.
    pub name: String,
    /// Rules, packets and what differed.
    pub story: String,
}
