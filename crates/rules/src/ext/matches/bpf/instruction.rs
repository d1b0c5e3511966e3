//! Instructions of classic BPF: their text, and what each code does.
//!
//! Source: bpf(4) of BSD; kernel `Documentation/networking/filter.rst`, and the codes that
//! `chk_code_allowed` in `net/core/filter.c` allows.

use std::fmt;

/// One instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instruction {
    pub(super) code: u16,
    /// Instructions to skip if a branch is taken.
    pub(super) jt: u8,
    /// Instructions to skip if it is not.
    pub(super) jf: u8,
    pub(super) k: u32,
}

/// What an instruction does; A and X are the two registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// A or X = a value.
    Load(Register, Source),
    /// A = that many bytes of the packet at `k`.
    LoadAt(usize),
    /// A = that many bytes of the packet at X + `k`.
    LoadIndexed(usize),
    /// X = 4 * the low half of the byte at `k`: the length of an IPv4 header.
    LoadHeaderLen,
    /// Cell `k` = a register.
    Store(Register),
    /// A = A combined with `k` or X.
    Alu(Alu, Operand),
    /// A = -A.
    Negate,
    /// Skip `k` instructions.
    Jump,
    /// Compare A with `k` or X.
    Branch(Comparison, Operand),
    /// Return `k`.
    ReturnK,
    /// Return A.
    ReturnA,
    /// X = A.
    CopyToX,
    /// A = X.
    CopyToA,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Register {
    A,
    X,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    K,
    Cell,
    PacketLen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operand {
    K,
    X,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alu {
    Add,
    Sub,
    Mul,
    Div,
    Or,
    And,
    Left,
    Right,
    Mod,
    Xor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Greater,
    GreaterOrEqual,
    AnyBit,
}

impl Instruction {
    /// Reads `code jt jf k`, all decimal.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split_ascii_whitespace();
        let mut field = |max: u32| {
            let text = fields.next().filter(|text| text.bytes().all(|c| c.is_ascii_digit()))?;
            text.parse::<u32>().ok().filter(|value| *value <= max)
        };
        let instruction = Self {
            code: field(u16::MAX.into())? as u16,
            jt: field(u8::MAX.into())? as u8,
            jf: field(u8::MAX.into())? as u8,
            k: field(u32::MAX)?,
        };
        fields.next().is_none().then_some(instruction)
    }

    /// What it does; `None` for a code that the kernel refuses.
    pub(super) fn operation(self) -> Option<Operation> {
        use Operation::{Alu as Compute, Branch, Load, LoadAt, LoadIndexed, Store};
        let operand = if self.code & 0x08 == 0 { Operand::K } else { Operand::X };
        Some(match self.code {
            0x00 => Load(Register::A, Source::K),
            0x60 => Load(Register::A, Source::Cell),
            0x80 => Load(Register::A, Source::PacketLen),
            0x01 => Load(Register::X, Source::K),
            0x61 => Load(Register::X, Source::Cell),
            0x81 => Load(Register::X, Source::PacketLen),
            0x20 => LoadAt(4),
            0x28 => LoadAt(2),
            0x30 => LoadAt(1),
            0x40 => LoadIndexed(4),
            0x48 => LoadIndexed(2),
            0x50 => LoadIndexed(1),
            0xb1 => Operation::LoadHeaderLen,
            0x02 => Store(Register::A),
            0x03 => Store(Register::X),
            0x84 => Operation::Negate,
            0x05 => Operation::Jump,
            0x06 => Operation::ReturnK,
            0x16 => Operation::ReturnA,
            0x07 => Operation::CopyToX,
            0x87 => Operation::CopyToA,
            code if code < 0x100 && code & 0x07 == 0x04 => Compute(alu(code)?, operand),
            code if code < 0x100 && code & 0x07 == 0x05 => Branch(comparison(code)?, operand),
            _ => return None,
        })
    }
}

fn alu(code: u16) -> Option<Alu> {
    Some(match code & 0xf0 {
        0x00 => Alu::Add,
        0x10 => Alu::Sub,
        0x20 => Alu::Mul,
        0x30 => Alu::Div,
        0x40 => Alu::Or,
        0x50 => Alu::And,
        0x60 => Alu::Left,
        0x70 => Alu::Right,
        0x90 => Alu::Mod,
        0xa0 => Alu::Xor,
        _ => return None,
    })
}

fn comparison(code: u16) -> Option<Comparison> {
    Some(match code & 0xf0 {
        0x10 => Comparison::Equal,
        0x20 => Comparison::Greater,
        0x30 => Comparison::GreaterOrEqual,
        0x40 => Comparison::AnyBit,
        _ => return None,
    })
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.code, self.jt, self.jf, self.k)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_read_and_print() {
        assert_eq!(Instruction::parse("48 0 0 9").unwrap().to_string(), "48 0 0 9");
        assert_eq!(Instruction::parse(" 21  1 2\t4294967295 ").unwrap().k, u32::MAX);
        for wrong in
            ["", "48 0 0", "48 0 0 9 1", "48 256 0 9", "65536 0 0 9", "48 0 0 -1", "48 0 0 x"]
        {
            assert_eq!(Instruction::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_the_kernel_s_codes_have_a_meaning() {
        let known = (0..=u16::MAX)
            .filter(|code| Instruction { code: *code, jt: 0, jf: 0, k: 0 }.operation().is_some());
        assert_eq!(known.count(), 49);
    }
}
