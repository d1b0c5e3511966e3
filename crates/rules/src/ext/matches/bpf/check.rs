//! What the kernel demands of a classic BPF program before it runs it: known codes, jumps that stay
//! inside, a return at the end, and no cell read before it is written.
//!
//! Source: kernel `bpf_check_classic`, `check_load_and_stores`, `net/core/filter.c`.

use super::instruction::{Alu, Instruction, Operand, Operation, Source};
use super::run::{AUXILIARY, CELLS, is_auxiliary};

/// What was expected, and at which instruction, counting from 0.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) index: usize,
    pub(super) expected: &'static str,
}

/// Checks a program.
pub(super) fn check(program: &[Instruction]) -> Result<(), Wrong> {
    let mut operations = Vec::with_capacity(program.len());
    for (index, instruction) in program.iter().enumerate() {
        let wrong = |expected| Wrong { index, expected };
        let operation = instruction.operation().ok_or_else(|| wrong("a known code"))?;
        check_one(*instruction, operation, program.len() - index - 1).map_err(wrong)?;
        operations.push(operation);
    }
    if !matches!(operations.last(), Some(Operation::ReturnK | Operation::ReturnA)) {
        return Err(Wrong { index: program.len().saturating_sub(1), expected: "a return" });
    }
    check_cells(program, &operations)
}

/// Checks one instruction that `after` others follow.
fn check_one(at: Instruction, operation: Operation, after: usize) -> Result<(), &'static str> {
    let inside = |skip: usize| skip < after;
    match operation {
        Operation::Alu(Alu::Div | Alu::Mod, Operand::K) if at.k == 0 => {
            Err("a divisor other than 0")
        }
        Operation::Alu(Alu::Left | Alu::Right, Operand::K) if at.k > 31 => Err("a shift 0-31"),
        Operation::Load(_, Source::Cell) | Operation::Store(_) if at.k as usize >= CELLS => {
            Err("a cell 0-15")
        }
        Operation::Jump if !inside(at.k as usize) => Err("a jump inside the program"),
        Operation::Branch(..) if !inside(at.jt.into()) || !inside(at.jf.into()) => {
            Err("a branch inside the program")
        }
        Operation::LoadAt(_) if at.k >= AUXILIARY && !is_auxiliary(at.k) => Err("a known offset"),
        _ => Ok(()),
    }
}

/// Follows the cells that are written on every way to an instruction. As in the kernel, the way past a
/// return counts.
fn check_cells(program: &[Instruction], operations: &[Operation]) -> Result<(), Wrong> {
    let mut written_at = vec![u16::MAX; program.len()];
    let mut written = 0;
    for (index, (at, operation)) in program.iter().zip(operations).enumerate() {
        written &= written_at[index];
        let mut lead = |skip: usize| {
            if let Some(there) = written_at.get_mut(index + 1 + skip) {
                *there &= written;
            }
        };
        match operation {
            Operation::Store(_) => written |= 1 << at.k,
            Operation::Load(_, Source::Cell) if written >> at.k & 1 == 0 => {
                return Err(Wrong { index, expected: "a cell written before" });
            }
            Operation::Jump => {
                lead(at.k as usize);
                written = u16::MAX;
            }
            Operation::Branch(..) => {
                lead(at.jt.into());
                lead(at.jf.into());
                written = u16::MAX;
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> Option<usize> {
        let program: Vec<Instruction> =
            text.split(',').map(|text| Instruction::parse(text).unwrap()).collect();
        check(&program).err().map(|wrong| wrong.index)
    }

    #[test]
    fn programs_that_the_kernel_takes_pass() {
        assert_eq!(wrong("48 0 0 9,21 0 1 6,6 0 0 1,6 0 0 0"), None);
        assert_eq!(wrong("2 0 0 15,96 0 0 15,22 0 0 0"), None);
        assert_eq!(wrong("5 0 0 0,6 0 0 1"), None);
        assert_eq!(wrong("48 0 0 4294963240,6 0 0 1"), None, "the processor, SKF_AD_CPU - 4096");
    }

    #[test]
    fn the_first_fault_is_named() {
        assert_eq!(wrong("48 0 0 9"), Some(0), "no return");
        assert_eq!(wrong("21 0 1 6,6 0 0 1"), Some(0), "branch past the end");
        assert_eq!(wrong("5 0 0 1,6 0 0 1"), Some(0), "jump past the end");
        assert_eq!(wrong("5 0 0 4294967295,6 0 0 1"), Some(0), "jump that would wrap");
        assert_eq!(wrong("0 0 0 1,52 0 0 0,6 0 0 1"), Some(1), "division by 0");
        assert_eq!(wrong("100 0 0 32,6 0 0 1"), Some(0), "shift by 32");
        assert_eq!(wrong("2 0 0 16,6 0 0 1"), Some(0), "no such cell");
        assert_eq!(wrong("96 0 0 0,6 0 0 1"), Some(0), "cell never written");
        assert_eq!(wrong("255 0 0 0,6 0 0 1"), Some(0), "no such code");
        assert_eq!(wrong("48 0 0 4294963201,6 0 0 1"), Some(0), "no such auxiliary");
    }

    #[test]
    fn a_cell_has_to_be_written_on_every_way() {
        assert_eq!(wrong("21 0 1 6,2 0 0 0,96 0 0 0,22 0 0 0"), Some(2));
        assert_eq!(wrong("21 1 0 6,2 0 0 0,96 0 0 0,22 0 0 0"), Some(2));
        assert_eq!(wrong("21 0 2 6,2 0 0 0,5 0 0 1,2 0 0 0,96 0 0 0,22 0 0 0"), None);
    }
}
