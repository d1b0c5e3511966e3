//! `-j CONNMARK`: changes the mark of the packet's connection, or copies it to or from the packet.
//!
//! Until connection tracking is evaluated the connection's mark is unknown: `--restore-mark` makes the
//! packet's bits unknown that it may change, the other operations change nothing that is known.
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_connmark.c`.

use crate::connection::KnownFlow;
use crate::error::What;
use crate::ext::{
    Alters, Args, Course, Effect, Given, IP, Opt, Printer, Support, Target, TargetKind,
};
use crate::predicate::{Bit, Change, Field};
use crate::transit::Transit;
use crate::value;
use packet::Mark;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "CONNMARK",
    families: IP,
    options: &[
        Opt::value("set-xmark"),
        Opt::value("set-mark"),
        Opt::value("and-mark"),
        Opt::value("or-mark"),
        Opt::value("xor-mark"),
        Opt::flag("save-mark"),
        Opt::flag("restore-mark"),
        Opt::value("left-shift-mark"),
        Opt::value("right-shift-mark"),
        Opt::value("ctmask"),
        Opt::value("nfmask"),
        Opt::value("mask"),
    ],
    support: Support::Evaluated,
    parse,
};

const OPERATIONS: [&str; 7] =
    ["set-xmark", "set-mark", "and-mark", "or-mark", "xor-mark", "save-mark", "restore-mark"];
const SHIFTS: [&str; 2] = ["left-shift-mark", "right-shift-mark"];
/// The tool takes 32 as well, which the kernel refuses.
const MAX_SHIFT: u64 = 31;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Set,
    Save,
    Restore,
}

#[derive(Debug)]
struct Connmark {
    operation: Operation,
    /// The value of [`Operation::Set`].
    ctmark: u32,
    ctmask: u32,
    nfmask: u32,
    shift: Option<Shift>,
}

#[derive(Debug, Clone, Copy)]
struct Shift {
    left: bool,
    bits: u8,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.any_of(&OPERATIONS)?;
    args.one_of(&OPERATIONS)?;
    args.one_of(&["mask", "ctmask"])?;
    args.one_of(&["mask", "nfmask"])?;
    let mut connmark = Connmark {
        operation: Operation::Set,
        ctmark: 0,
        ctmask: u32::MAX,
        nfmask: u32::MAX,
        shift: None,
    };
    for given in args.given {
        connmark.take(given)?;
    }
    Ok(Box::new(connmark))
}

impl Connmark {
    /// Options act in the order given: a later one may set the same mask again.
    fn take(&mut self, given: &Given<'_>) -> Result<(), What> {
        match given.name {
            "save-mark" => self.operation = Operation::Save,
            "restore-mark" => self.operation = Operation::Restore,
            "set-xmark" | "set-mark" => {
                let (mark, mask) = value::masked_u32(given.text())
                    .ok_or_else(|| given.expected("value or value/mask of 32 bits"))?;
                let mask = if given.name == "set-mark" { mark | mask } else { mask };
                (self.ctmark, self.ctmask) = (mark, mask);
            }
            name if SHIFTS.contains(&name) => {
                let bits = value::number(given.text(), MAX_SHIFT)
                    .ok_or_else(|| given.expected("a number of bits 0-31"))?;
                self.shift = Some(Shift { left: name == SHIFTS[0], bits: bits as u8 });
            }
            name => {
                let bits =
                    value::u32(given.text()).ok_or_else(|| given.expected("a value of 32 bits"))?;
                self.take_bits(name, bits);
            }
        }
        Ok(())
    }

    fn take_bits(&mut self, name: &str, bits: u32) {
        match name {
            "and-mark" => (self.ctmark, self.ctmask) = (0, !bits),
            "or-mark" => (self.ctmark, self.ctmask) = (bits, bits),
            "xor-mark" => (self.ctmark, self.ctmask) = (bits, 0),
            "ctmask" => self.ctmask = bits,
            "nfmask" => self.nfmask = bits,
            _ => (self.ctmask, self.nfmask) = (bits, bits),
        }
    }
}

impl Target for Connmark {
    fn print(&self, to: &mut Printer) {
        let name = match self.operation {
            Operation::Set => {
                let text = format!("{:#x}/{:#x}", self.ctmark, self.ctmask);
                to.option(false, "set-xmark", text);
                None
            }
            Operation::Save => Some("save-mark"),
            Operation::Restore => Some("restore-mark"),
        };
        if let Some(name) = name {
            to.flag(false, name)
                .option(false, "nfmask", format_args!("{:#x}", self.nfmask))
                .option(false, "ctmask", format_args!("{:#x}", self.ctmask));
        }
        if let Some(shift) = self.shift.filter(|shift| shift.bits != 0) {
            to.option(false, SHIFTS[usize::from(!shift.left)], shift.bits);
        }
    }

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        match self.operation {
            Operation::Set => {
                transit.ct.change(transit.certain, |flow| {
                    flow.mark = self.shifted((flow.mark & !self.ctmask) ^ self.ctmark);
                });
            }
            Operation::Save => {
                let mark = transit.mark;
                let known = transit.certain && mark.unknown & self.nfmask == 0;
                let saved = self.shifted(mark.value & self.nfmask);
                transit.ct.change(known, |flow| flow.mark = (flow.mark & !self.ctmask) ^ saved);
            }
            Operation::Restore => self.restore(transit),
        }
        Effect::Continue
    }

    fn tracks(&self) -> bool {
        true
    }

    fn course(&self) -> Course {
        Course::Passes(Alters::Unnamed)
    }

    fn changes(&self) -> Vec<Change> {
        let changes = match self.operation {
            Operation::Set if self.shift.is_some() => Change::lost(Field::ConnMark, 32),
            Operation::Set => {
                Change::masked(Field::ConnMark, 32, self.ctmark.into(), self.ctmask.into())
            }
            Operation::Save => self.copied(Field::ConnMark, self.ctmask, Field::Mark, self.nfmask),
            Operation::Restore => {
                self.copied(Field::Mark, self.nfmask, Field::ConnMark, self.ctmask)
            }
        };
        changes.into_iter().map(|change| Change { of_connection: true, ..change }).collect()
    }
}

impl Connmark {
    fn restore(&self, transit: &mut Transit<'_, '_>) {
        let old = transit.mark;
        let kept = old.value & !self.nfmask;
        let restored = match transit.ct.marked() {
            // A packet without a connection keeps its mark.
            KnownFlow::None => return,
            KnownFlow::Flow(flow) => {
                let unknown = old.unknown & !self.nfmask;
                let value = kept ^ self.shifted(flow.mark & self.ctmask);
                Mark { value: value & !unknown, unknown }
            }
            KnownFlow::Unknown => {
                let unknown = (old.unknown & !self.nfmask) | self.shifted(self.ctmask);
                old.join(Mark { value: kept & !unknown, unknown })
            }
        };
        transit.set_mark(restored);
    }

    /// `to = (to & !cleared) ^ shifted(from & kept)`, bit by bit.
    fn copied(&self, to: Field, cleared: u32, from: Field, kept: u32) -> Vec<Change> {
        let source = |bit: u32| (0..32).find(|from| self.shifted(1 << from) == 1 << bit);
        let of = |bit: u32| {
            let source = source(bit).filter(|from| kept >> from & 1 == 1);
            match (source, cleared >> bit & 1) {
                (Some(bit), 1) => Some(Bit::Of { field: from, bit, inverted: false }),
                // One that depends on two.
                (Some(_), _) => Some(Bit::Lost),
                (None, 1) => Some(Bit::Is(false)),
                (None, _) => None,
            }
        };
        (0..32).filter_map(|bit| Some(Change::new(to, bit, of(bit)?))).collect()
    }

    fn shifted(&self, bits: u32) -> u32 {
        match self.shift {
            None => bits,
            Some(Shift { left: true, bits: by }) => bits << by,
            Some(Shift { left: false, bits: by }) => bits >> by,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restoring(ctmask: u32, shift: Option<Shift>) -> Connmark {
        Connmark { operation: Operation::Restore, ctmark: 0, ctmask, nfmask: u32::MAX, shift }
    }

    #[test]
    fn a_shift_moves_the_bits_that_become_unknown() {
        assert_eq!(restoring(0xff, None).shifted(0xff), 0xff);
        assert_eq!(
            restoring(0xff, Some(Shift { left: true, bits: 28 })).shifted(0xff),
            0xf000_0000
        );
        assert_eq!(restoring(0xff, Some(Shift { left: false, bits: 4 })).shifted(0xff), 0x0f);
    }
}
