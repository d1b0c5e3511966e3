//! `-m bpf`: a classic BPF program over the packet, from the network header on; it matches if the
//! program returns anything but 0.
//!
//! `--object-pinned` names a program in the kernel, which is not known here. Source:
//! iptables-extensions(8); kernel `net/netfilter/xt_bpf.c`, `net/core/filter.c`.

mod check;
mod instruction;
mod run;

use crate::error::What;
use crate::ext::{Args, Given, IP, Match, MatchKind, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::transit::Transit;
use instruction::Instruction;

/// `XT_BPF_MAX_NUM_INSTR`.
const MAX_INSTRUCTIONS: usize = 64;
const MAX_PATH: usize = 511;
/// Instructions that take about the time of a rule.
const INSTRUCTIONS_A_STEP: usize = 8;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "bpf",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("bytecode"), Opt::value("object-pinned")],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
enum Bpf {
    Program(Box<[Instruction]>),
    Pinned(Box<str>),
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.any_of(&["bytecode", "object-pinned"])?;
    args.one_of(&["bytecode", "object-pinned"])?;
    if let Some(given) = args.get("object-pinned") {
        if given.text().is_empty() || given.text().len() > MAX_PATH {
            return Err(given.expected(format!("a path of at most {MAX_PATH} bytes")));
        }
        return Ok(Box::new(Bpf::Pinned(given.text().into())));
    }
    let given = args.required("bytecode")?;
    let program = parse_program(given)?;
    check::check(&program).map_err(|wrong| {
        given.expected(format!("{} as instruction {}", wrong.expected, wrong.index))
    })?;
    Ok(Box::new(Bpf::Program(program.into())))
}

/// `count,code jt jf k,…`; a comma may follow the last instruction.
fn parse_program(given: &Given<'_>) -> Result<Vec<Instruction>, What> {
    let text = given.text();
    let (count, list) = text.split_once(',').unwrap_or((text, ""));
    let count: usize = count
        .parse()
        .ok()
        .filter(|count| (1..=MAX_INSTRUCTIONS).contains(count))
        .ok_or_else(|| given.expected(format!("1-{MAX_INSTRUCTIONS} instructions first")))?;
    let list = list.strip_suffix(',').unwrap_or(list);
    if list.split(',').count() != count {
        return Err(given.expected(format!("{count} instructions")));
    }
    list.split(',')
        .map(|text| {
            Instruction::parse(text)
                .ok_or_else(|| given.expected(format!("code jt jf k and not \"{text}\"")))
        })
        .collect()
}

impl Match for Bpf {
    fn print(&self, to: &mut Printer) {
        match self {
            Self::Program(program) => {
                let list: Vec<String> = program.iter().map(ToString::to_string).collect();
                let text = format!("\"{},{}\"", program.len(), list.join(","));
                to.option(false, "bytecode", text);
            }
            Self::Pinned(path) => _ = to.flag(false, "object-pinned").plain(path),
        }
    }

    fn work(&self, _bytes: usize) -> u32 {
        match self {
            Self::Program(program) => (program.len() / INSTRUCTIONS_A_STEP) as u32,
            Self::Pinned(_) => 0,
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        match self {
            Self::Program(program) => run::run(program, transit),
            Self::Pinned(_) => Outcome::MAYBE,
        }
    }
}
