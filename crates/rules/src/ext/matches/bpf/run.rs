//! Runs a checked classic BPF program over a packet whose bytes may be unknown.
//!
//! Registers and cells may hold "unknown"; a branch on one, or a read at one, ends the run undecided.
//! A read beyond the packet and a division by 0 return 0. Source: kernel `net/core/filter.c`.

use packet::Read;

use super::instruction::{Alu, Comparison, Instruction, Operand, Operation, Register, Source};
use crate::family::Family;
use crate::outcome::Outcome;
use crate::transit::Transit;

/// Cells of memory.
pub(super) const CELLS: usize = 16;
/// From this offset on reads ask for what is not in the packet (`SKF_AD_OFF`).
pub(super) const AUXILIARY: u32 = -0x1000_i32 as u32;
/// Reads from here count from the network header (`SKF_NET_OFF`).
const NETWORK: u32 = -0x10_0000_i32 as u32;
/// Reads from here count from the link header (`SKF_LL_OFF`).
const LINK: u32 = -0x20_0000_i32 as u32;
/// Bytes of the longest link header (`dev->hard_header_len`, of 8 bits when a packet is made room for).
const LONGEST_LINK: usize = 256;

/// Whether an offset names something that the kernel knows of the packet.
pub(super) fn is_auxiliary(offset: u32) -> bool {
    let number = offset.wrapping_sub(AUXILIARY);
    number <= 60 && number.is_multiple_of(4)
}

/// What a program says about a packet.
pub(super) fn run(program: &[Instruction], transit: &Transit<'_, '_>) -> Outcome {
    let mut machine = Machine { a: Some(0), x: Some(0), cells: [None; CELLS], transit };
    let mut next = 0;
    while let Some(at) = program.get(next) {
        match machine.step(*at) {
            Ok(skip) => next += 1 + skip,
            Err(outcome) => return outcome,
        }
    }
    Outcome::NO
}

struct Machine<'t, 'p, 'b> {
    a: Option<u32>,
    x: Option<u32>,
    cells: [Option<u32>; CELLS],
    transit: &'t Transit<'p, 'b>,
}

/// The end of a run that returned this; `None` is unknown.
fn returned(value: Option<u32>) -> Outcome {
    value.map_or(Outcome::MAYBE, |value| Outcome::from_bool(value != 0))
}

impl Machine<'_, '_, '_> {
    /// Executes one instruction: how many to skip, or the outcome of the run.
    fn step(&mut self, at: Instruction) -> Result<usize, Outcome> {
        let operation = at.operation().ok_or(Outcome::NO)?;
        match operation {
            Operation::Load(register, source) => {
                let value = self.value(source, at.k);
                *self.register(register) = value;
            }
            Operation::LoadAt(_) if at.k >= AUXILIARY => self.a = self.auxiliary(at.k)?,
            Operation::LoadAt(size) => self.a = self.read(at.k, size)?,
            Operation::LoadIndexed(size) => {
                let x = self.x.ok_or(Outcome::MAYBE)?;
                self.a = self.read(x.wrapping_add(at.k), size)?;
            }
            Operation::LoadHeaderLen => {
                self.x = self.read(at.k, 1)?.map(|byte| (byte & 0x0f) << 2);
            }
            Operation::Store(register) => {
                let value = *self.register(register);
                if let Some(cell) = self.cells.get_mut(at.k as usize) {
                    *cell = value;
                }
            }
            Operation::Alu(alu, operand) => {
                self.a = self.compute(alu, self.operand(operand, at.k))?
            }
            Operation::Negate => self.a = self.a.map(u32::wrapping_neg),
            Operation::Jump => return Ok(at.k as usize),
            Operation::Branch(comparison, operand) => {
                let (a, b) = self.a.zip(self.operand(operand, at.k)).ok_or(Outcome::MAYBE)?;
                return Ok(if holds(comparison, a, b) { at.jt } else { at.jf }.into());
            }
            Operation::ReturnK => return Err(returned(Some(at.k))),
            Operation::ReturnA => return Err(returned(self.a)),
            Operation::CopyToX => self.x = self.a,
            Operation::CopyToA => self.a = self.x,
        }
        Ok(0)
    }

    fn register(&mut self, register: Register) -> &mut Option<u32> {
        match register {
            Register::A => &mut self.a,
            Register::X => &mut self.x,
        }
    }

    fn operand(&self, operand: Operand, k: u32) -> Option<u32> {
        match operand {
            Operand::K => Some(k),
            Operand::X => self.x,
        }
    }

    fn value(&self, source: Source, k: u32) -> Option<u32> {
        match source {
            Source::K => Some(k),
            Source::Cell => self.cells.get(k as usize).copied().flatten(),
            Source::PacketLen if self.transit.packet.is_open() => None,
            Source::PacketLen => Some(self.transit.packet.len() as u32),
        }
    }

    /// `size` bytes of the packet, big end first.
    fn read(&self, offset: u32, size: usize) -> Result<Option<u32>, Outcome> {
        let offset = match offset {
            0..0x8000_0000 => offset,
            // The link header of a packet is not always the captured one, but none is longer than this.
            LINK..NETWORK => {
                let packet = &self.transit.packet;
                let is_past = (offset - LINK) as usize >= LONGEST_LINK + packet.len();
                let is_sure = is_past && !packet.is_open();
                return Err(if is_sure { Outcome::NO } else { Outcome::MAYBE });
            }
            NETWORK.. => offset - NETWORK,
            _ => return Err(Outcome::NO),
        };
        let packet = &self.transit.packet;
        match packet.read_slice(packet.network_offset().saturating_add(offset as usize), size) {
            Read::Known(bytes) => {
                Ok(Some(bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte))))
            }
            Read::Unknown => Ok(None),
            Read::Absent => Err(Outcome::NO),
        }
    }

    /// Returns what is known of a packet besides its bytes.
    fn auxiliary(&self, offset: u32) -> Result<Option<u32>, Outcome> {
        match offset - AUXILIARY {
            0 => Ok(match self.transit.family {
                Family::Ipv4 => Some(0x0800),
                Family::Ipv6 => Some(0x86dd),
                Family::Arp | Family::Bridge => None,
            }),
            // Interface and its type: without an interface the run ends.
            8 | 28 => Err(Outcome::MAYBE),
            20 => Ok((self.transit.mark.unknown == 0).then_some(self.transit.mark.value)),
            40 => Ok(self.a.zip(self.x).map(|(a, x)| a ^ x)),
            _ => Ok(None),
        }
    }

    fn compute(&self, alu: Alu, operand: Option<u32>) -> Result<Option<u32>, Outcome> {
        if let Alu::Div | Alu::Mod = alu {
            match operand {
                None => return Err(Outcome::MAYBE),
                Some(0) => return Err(Outcome::NO),
                Some(_) => {}
            }
        }
        Ok(self.a.zip(operand).map(|(a, b)| match alu {
            Alu::Add => a.wrapping_add(b),
            Alu::Sub => a.wrapping_sub(b),
            Alu::Mul => a.wrapping_mul(b),
            Alu::Div => a.checked_div(b).unwrap_or(0),
            Alu::Mod => a.checked_rem(b).unwrap_or(0),
            Alu::Or => a | b,
            Alu::And => a & b,
            Alu::Xor => a ^ b,
            Alu::Left => a.wrapping_shl(b),
            Alu::Right => a.wrapping_shr(b),
        }))
    }
}

fn holds(comparison: Comparison, a: u32, b: u32) -> bool {
    match comparison {
        Comparison::Equal => a == b,
        Comparison::Greater => a > b,
        Comparison::GreaterOrEqual => a >= b,
        Comparison::AnyBit => a & b != 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::check::check;
    use super::*;
    use crate::ext::kit::testing::{ipv4_udp, with_transit};

    fn cut(text: &str, captured: usize) -> Outcome {
        let program: Vec<Instruction> =
            text.split(',').map(|text| Instruction::parse(text).unwrap()).collect();
        assert_eq!(check(&program), Ok(()), "{text}");
        with_transit(&ipv4_udp(b"abcdefgh"), captured, |transit| run(&program, transit))
    }

    fn holds(text: &str) -> bool {
        let outcome = cut(text, 36);
        assert!(outcome.is_known(), "{text}");
        outcome == Outcome::YES
    }

    #[test]
    fn loads_count_from_the_network_header() {
        assert!(holds("48 0 0 9,21 0 1 17,6 0 0 1,6 0 0 0"));
        assert!(holds("177 0 0 0,72 0 0 2,21 0 1 53,6 0 0 1,6 0 0 0"), "ldh [x + 2] after ldxb");
        assert!(holds("32 0 0 4293918748,21 0 1 1633837924,6 0 0 1,6 0 0 0"), "SKF_NET_OFF + 28");
        assert!(holds("128 0 0 0,21 0 1 36,6 0 0 1,6 0 0 0"), "the length");
    }

    #[test]
    fn beyond_the_packet_and_by_zero_it_returns_0() {
        assert!(!holds("32 0 0 33,6 0 0 1"));
        assert!(holds("32 0 0 32,6 0 0 1"));
        assert!(!holds("0 0 0 9,60 0 0 0,6 0 0 1"), "X is 0 at first");
        assert!(!holds("1 0 0 4294967295,64 0 0 4294963200,6 0 0 1"));
    }

    #[test]
    fn arithmetic_wraps_at_32_bits() {
        assert!(holds("0 0 0 0,20 0 0 1,21 0 1 4294967295,6 0 0 1,6 0 0 0"));
        assert!(holds("0 0 0 1,1 0 0 33,108 0 0 0,21 0 1 2,6 0 0 1,6 0 0 0"), "shifts modulo 32");
        assert!(holds("0 0 0 1,132 0 0 0,21 0 1 4294967295,6 0 0 1,6 0 0 0"));
        assert!(holds("0 0 0 17,148 0 0 5,22 0 0 0"));
        assert!(!holds("0 0 0 15,148 0 0 5,22 0 0 0"));
    }

    #[test]
    fn the_kernel_s_knowledge_of_the_packet() {
        assert!(holds("40 0 0 4294963200,21 0 1 2048,6 0 0 1,6 0 0 0"));
        assert!(holds("32 0 0 4294963220,21 0 1 7,6 0 0 1,6 0 0 0"), "the mark");
        assert_eq!(cut("32 0 0 4294963256,22 0 0 0", 36), Outcome::MAYBE, "a random number");
        assert_eq!(cut("32 0 0 4294963256,6 0 0 1", 36), Outcome::YES, "that does not matter");
    }

    #[test]
    fn bytes_that_were_not_captured_are_unknown() {
        assert_eq!(cut("32 0 0 28,22 0 0 0", 28), Outcome::MAYBE);
        assert_eq!(cut("32 0 0 28,6 0 0 0", 28), Outcome::NO);
        assert_eq!(cut("32 0 0 28,21 0 0 1,6 0 0 0", 28), Outcome::MAYBE);
        assert_eq!(cut("32 0 0 33,6 0 0 1", 28), Outcome::NO);
    }

    prop_compose! {
        fn instruction()(
            code in prop::sample::select(vec![
                0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x0c, 0x15, 0x1d, 0x20, 0x25, 0x28,
                0x30, 0x34, 0x3c, 0x40, 0x45, 0x48, 0x50, 0x60, 0x61, 0x74, 0x80, 0x87, 0xb1, 0xac_u16,
            ]),
            jt in 0..4_u8,
            jf in 0..4_u8,
            k in prop_oneof![0..40_u32, any::<u32>(), AUXILIARY..AUXILIARY + 64],
        ) -> Instruction {
            Instruction { code, jt, jf, k }
        }
    }

    proptest! {
        /// Knowing less of the packet never turns an answer round.
        #[test]
        fn a_cut_capture_only_makes_answers_unknown(
            mut program in prop::collection::vec(instruction(), 0..12),
            captured in 20..36_usize,
        ) {
            program.push(Instruction { code: 0x16, jt: 0, jf: 0, k: 0 });
            if check(&program).is_ok() {
                let packet = ipv4_udp(b"abcdefgh");
                let whole = with_transit(&packet, 36, |transit| run(&program, transit));
                let cut = with_transit(&packet, captured, |transit| run(&program, transit));
                prop_assert!(cut == whole || cut == Outcome::MAYBE, "{:?} is not {:?}", cut, whole);
            }
        }
    }
}
