//! [`Router`]: what the router in front of a node does with UDP ports, as far as a directory has seen it (RFC 4787 has the words).

use crate::wire::{Malformed, Reader, Writer};

/// The longest step of a router that counts on.
const LONGEST_STEP: i32 = 16;

/// A router as a directory sees it from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Router {
    /// Which ports it gives.
    pub ports: Ports,
    /// What becomes of what comes from where its node has not sent.
    pub strangers: Strangers,
}

/// Which ports a router gives a socket of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ports {
    /// Nothing was seen.
    #[default]
    Unknown,
    /// One for all ports of the directory's host, as where there is no router.
    One,
    /// Another one for each destination: this many after the last.
    Step(i16),
    /// Another one for each destination, that nobody can guess.
    Each,
}

/// What becomes of a datagram from where a node has not sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strangers {
    /// Nobody has seen.
    #[default]
    Unknown,
    /// It leaves no trace in the router: it is dropped, or let in.
    Pass,
    /// The router takes it for its own, and then gives the node another port for that sender.
    Taken,
}

impl Ports {
    /// What two ports say that a node was given for two destinations in turn, where its session has that port.
    pub(crate) fn of(session: u16, [first, second]: [u16; 2]) -> Self {
        let step = i32::from(second) - i32::from(first);
        match i16::try_from(step) {
            Ok(0) if first == session => Self::One,
            Ok(step) if step != 0 && i32::from(step).abs() <= LONGEST_STEP => Self::Step(step),
            _ => Self::Each,
        }
    }

    /// The ports that follow one, if they can be guessed.
    pub(crate) fn after(self, port: u16) -> impl Iterator<Item = u16> {
        let step = match self {
            Self::Step(step) => Some(i32::from(step)),
            Self::Unknown | Self::One | Self::Each => None,
        };
        let next = move |count: i32| u16::try_from(i32::from(port) + count * step?).ok();
        (1..).map_while(next).filter(|port| *port != 0)
    }
}

impl Router {
    pub(crate) fn write(self, to: &mut Writer) {
        let (kind, step) = match self.ports {
            Ports::Unknown => (0, 0),
            Ports::One => (1, 0),
            Ports::Step(step) => (2, step),
            Ports::Each => (3, 0),
        };
        to.bytes(&[kind]).bytes(&step.to_le_bytes()).bytes(&[self.strangers as u8]);
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = from.expected("ports of a router");
        let (kind, step) = (from.byte("ports")?, i16::from_le_bytes(from.array("a step")?));
        let ports = match (kind, step) {
            (0, 0) => Ports::Unknown,
            (1, 0) => Ports::One,
            (2, step) if step != 0 => Ports::Step(step),
            (3, 0) => Ports::Each,
            _ => return Err(wrong),
        };
        let wrong = from.expected("what becomes of strangers, from 0 to 2");
        let strangers = match from.byte("strangers")? {
            0 => Strangers::Unknown,
            1 => Strangers::Pass,
            2 => Strangers::Taken,
            _ => return Err(wrong),
        };
        Ok(Self { ports, strangers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_that_rise_by_little_are_counted_on_and_others_are_not() {
        let of = |first, second| Ports::of(51_900, [first, second]);
        assert_eq!(of(51_900, 51_900), Ports::One);
        // Both of another port than the session: it may have met something else.
        assert_eq!(of(40_000, 40_000), Ports::Each);
        assert_eq!(of(41_002, 41_004), Ports::Step(2));
        assert_eq!(of(41_004, 41_003), Ports::Step(-1));
        assert_eq!(of(41_000, 41_017), Ports::Each);
        assert_eq!(of(1, 65_535), Ports::Each);
    }

    #[test]
    fn ports_that_follow_end_where_there_are_no_more() {
        let after = |ports: Ports, port| ports.after(port).take(3).collect::<Vec<_>>();
        assert_eq!(after(Ports::Step(2), 41_000), [41_002, 41_004, 41_006]);
        assert_eq!(after(Ports::Step(16), 65_510), [65_526]);
        assert_eq!(after(Ports::Step(-2), 3), [1]);
        assert!(after(Ports::One, 1).is_empty() && after(Ports::Each, 1).is_empty());
    }
}
