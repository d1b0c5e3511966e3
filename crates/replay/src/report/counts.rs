//! Packets and bytes, and those of each verdict.

use dataplane::FinalVerdict;

/// Packets and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Count {
    /// One more packet.
    #[inline]
    pub fn add(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }

    /// All packets of another count, too.
    pub(crate) fn merge(&mut self, other: &Self) {
        let Self { packets, bytes } = other;
        self.packets += packets;
        self.bytes += bytes;
    }
}

/// Packets by verdict; bytes as the kernel counts them.
#[derive(Debug, Clone, Copy, Default, serde::Serialize)]
pub struct VerdictCounts {
    /// Went through.
    pub accept: Count,
    /// Dropped silently.
    pub drop: Count,
    /// Dropped, and the sender told.
    pub reject: Count,
    /// Depended on something that is not known.
    pub unknown: Count,
    /// Not evaluated.
    pub skip: Count,
}

impl VerdictCounts {
    /// The count of a verdict.
    pub(crate) fn of(&mut self, verdict: FinalVerdict) -> &mut Count {
        match verdict {
            FinalVerdict::Accept(_) => &mut self.accept,
            FinalVerdict::Drop(_) => &mut self.drop,
            FinalVerdict::Reject(_) => &mut self.reject,
            FinalVerdict::Unknown => &mut self.unknown,
            FinalVerdict::Skip(_) => &mut self.skip,
        }
    }

    /// Each with its name.
    pub(crate) fn named(&self) -> [(&'static str, Count); 5] {
        let Self { accept, drop, reject, unknown, skip } = *self;
        [
            ("accept", accept),
            ("drop", drop),
            ("reject", reject),
            ("unknown", unknown),
            ("skip", skip),
        ]
    }
}
