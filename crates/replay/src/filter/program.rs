//! Classic BPF as libpcap runs it over a captured frame.
//!
//! Contract: jumps only go forward, so every run ends; a read beyond the captured bytes and a division by
//! 0 reject the frame. Source: bpf(4) of BSD; libpcap `bpf_filter.c`, whose behaviour this has.

/// Cells of scratch memory.
const CELLS: usize = 16;
/// Instructions of a program: libpcap's own limit is lower.
const MOST: usize = 1 << 16;

/// A program that was found sound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program(Vec<Instruction>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Instruction {
    code: u16,
    jt: u8,
    jf: u8,
    k: u32,
}

/// The registers, and the scratch memory.
#[derive(Default)]
struct State {
    a: u32,
    x: u32,
    cells: [u32; CELLS],
}

impl Program {
    /// Reads a count and that number of instructions `code jt jf k`, apart by commas or newlines.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.split([',', '\n']).map(str::trim).filter(|part| !part.is_empty());
        let count: Option<usize> = parts.next().and_then(|count| count.parse().ok());
        let count = count
            .filter(|count| (1..=MOST).contains(count))
            .ok_or("expected the number of BPF instructions first")?;
        let program = parts
            .map(|part| {
                Instruction::parse(part).ok_or(format!("expected code jt jf k, found \"{part}\""))
            })
            .collect::<Result<Vec<_>, String>>()?;
        if program.len() != count {
            return Err(format!("expected {count} BPF instructions, found {}", program.len()));
        }
        Ok(Self(program))
    }

    /// What it returns: 0 rejects. `wire_len` is the frame's length on the wire.
    pub(super) fn run(&self, frame: &[u8], wire_len: u32) -> u32 {
        let mut state = State::default();
        let mut at = 0_usize;
        while let Some(instruction) = self.0.get(at) {
            match state.step(*instruction, frame, wire_len) {
                Some(Next::Skip(skip)) => at = at.saturating_add(1).saturating_add(skip as usize),
                Some(Next::Return(value)) => return value,
                None => return 0,
            }
        }
        0
    }
}

enum Next {
    Skip(u32),
    Return(u32),
}

impl Instruction {
    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split_ascii_whitespace();
        let instruction = Self {
            code: fields.next()?.parse().ok()?,
            jt: fields.next()?.parse().ok()?,
            jf: fields.next()?.parse().ok()?,
            k: fields.next()?.parse().ok()?,
        };
        fields.next().is_none().then_some(instruction)
    }
}

impl State {
    /// Executes one instruction; `None` rejects the frame.
    fn step(&mut self, at: Instruction, frame: &[u8], wire_len: u32) -> Option<Next> {
        let Instruction { code, k, .. } = at;
        let operand = if code & 0x08 == 0 { k } else { self.x };
        match code & 0x07 {
            0x00 => self.a = self.load(at, frame, wire_len)?,
            0x01 if code == 0xb1 => self.x = (read(frame, k, 1)? & 0x0f) * 4,
            0x01 => self.x = self.load(at, frame, wire_len)?,
            0x02 => *self.cells.get_mut(k as usize)? = self.a,
            0x03 => *self.cells.get_mut(k as usize)? = self.x,
            0x04 => self.a = compute(code, self.a, operand)?,
            0x05 => return self.jump(at, operand),
            0x06 => return Some(Next::Return(if code & 0x18 == 0x10 { self.a } else { k })),
            _ if code == 0x87 => self.a = self.x,
            _ => self.x = self.a,
        }
        Some(Next::Skip(0))
    }

    /// The value that a load reads, by its addressing mode and size.
    fn load(&self, at: Instruction, frame: &[u8], wire_len: u32) -> Option<u32> {
        let size = match at.code & 0x18 {
            0x00 => 4,
            0x08 => 2,
            _ => 1,
        };
        match at.code & 0xe0 {
            0x00 => Some(at.k),
            0x20 => read(frame, at.k, size),
            0x40 => read(frame, self.x.checked_add(at.k)?, size),
            0x60 => self.cells.get(at.k as usize).copied(),
            0x80 => Some(wire_len),
            _ => None,
        }
    }

    fn jump(&self, at: Instruction, operand: u32) -> Option<Next> {
        let taken = match at.code & 0xf0 {
            0x00 => return Some(Next::Skip(at.k)),
            0x10 => self.a == operand,
            0x20 => self.a > operand,
            0x30 => self.a >= operand,
            0x40 => self.a & operand != 0,
            _ => return None,
        };
        Some(Next::Skip(u32::from(if taken { at.jt } else { at.jf })))
    }
}

/// `size` bytes of the frame, big endian.
fn read(frame: &[u8], offset: u32, size: usize) -> Option<u32> {
    let offset = offset as usize;
    let bytes = frame.get(offset..offset.checked_add(size)?)?;
    Some(bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
}

fn compute(code: u16, a: u32, operand: u32) -> Option<u32> {
    Some(match code & 0xf0 {
        0x00 => a.wrapping_add(operand),
        0x10 => a.wrapping_sub(operand),
        0x20 => a.wrapping_mul(operand),
        0x30 => a.checked_div(operand)?,
        0x40 => a | operand,
        0x50 => a & operand,
        0x60 => a.checked_shl(operand).unwrap_or(0),
        0x70 => a.checked_shr(operand).unwrap_or(0),
        0x80 => a.wrapping_neg(),
        0x90 => a.checked_rem(operand)?,
        0xa0 => a ^ operand,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(text: &str, frame: &[u8]) -> u32 {
        Program::parse(text).unwrap().run(frame, 1000)
    }

    #[test]
    fn loads_jumps_and_returns() {
        assert_eq!(run("1,6 0 0 7", &[]), 7);
        assert_eq!(run("2,128 0 0 0,22 0 0 0", &[]), 1000, "the length on the wire");
        let is_five = "4,48 0 0 1,21 0 1 5,6 0 0 1,6 0 0 0";
        assert_eq!((run(is_five, &[0, 5]), run(is_five, &[0, 6]), run(is_five, &[0])), (1, 0, 0));
        assert_eq!(run("4,177 0 0 0,80 0 0 2,4 0 0 1,22 0 0 0", &[0x41, 0, 0, 0, 0, 0, 9]), 10);
        assert_eq!(run("5,0 0 0 8,2 0 0 3,0 0 0 1,97 0 0 3,12 0 0 0", &[]), 0, "no return");
        assert_eq!(run("3,0 0 0 8,52 0 0 0,6 0 0 1", &[]), 0, "a division by 0 rejects");
    }

    #[test]
    fn what_is_no_program_is_refused() {
        for text in ["", "x", "0,", "2,6 0 0 1", "1,6 0 0", "1,6 0 256 0", "1,6 0 0 1 1"] {
            assert!(Program::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_program_ends(
            code in proptest::collection::vec((any::<u16>(), any::<u8>(), any::<u8>(), any::<u32>()), 1..40),
            frame in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            let program = code.into_iter()
                .map(|(code, jt, jf, k)| Instruction { code: code & 0xff, jt: jt & 7, jf: jf & 7, k: k % 64 });
            Program(program.collect()).run(&frame, 80);
        }
    }
}
