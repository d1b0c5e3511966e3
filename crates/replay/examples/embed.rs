//! tamis as a library: `embed RULES CAPTURE PACKET-SPEC` counts what becomes of a capture, then asks about one packet.

use std::error::Error;

use conntrack::Mode;
use dataplane::FinalVerdict;
use replay::run::{self, Wanted};
use replay::walk::WalkOptions;
use replay::{spec, why};

/// Replays a capture: how many of its packets are let through, and the rule that stops most of the others.
pub(crate) fn replayed(
    rules: &str,
    capture: &str,
    walk: &WalkOptions,
) -> Result<String, Box<dyn Error>> {
    let files = walk.open(rules)?;
    let setup = walk.setup(rules, Mode::Midstream)?;
    let report = run::replay(&files, &[capture.to_owned()], &setup, &mut Wanted::default())?;
    let verdicts = &report.verdicts;
    let mut text = format!(
        "{} packets: {} accepted, {} dropped or rejected, {} unknown\n",
        report.packets,
        verdicts.accept.packets,
        verdicts.drop.packets + verdicts.reject.packets,
        verdicts.unknown.packets,
    );
    let top = report.top(&report.refused_by);
    if let Some((file, by, count, _)) = top.first() {
        let (line, rule) = (file.by_line(*by), file.by_text(*by));
        text += &format!("{} of them by line {line}: {rule}\n", count.packets);
    }
    Ok(text)
}

/// Asks about one packet: whether it passes, where that is known.
pub(crate) fn passes(
    rules: &str,
    packet: &str,
    walk: &WalkOptions,
) -> Result<Option<bool>, Box<dyn Error>> {
    let files = walk.open(rules)?;
    let setup = walk.setup(rules, spec::CT)?;
    let story = why::of_conversation(&files, &setup, &[], &spec::parse(packet)?, None);
    Ok(match story.verdict() {
        FinalVerdict::Accept(_) => Some(true),
        FinalVerdict::Drop(_) | FinalVerdict::Reject(_) => Some(false),
        FinalVerdict::Unknown | FinalVerdict::Skip(_) => None,
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [rules, capture, packet] = given.as_slice() else {
        return Err("expected RULES CAPTURE PACKET-SPEC".into());
    };
    let walk = WalkOptions::default();
    print!("{}", replayed(rules, capture, &walk)?);
    match passes(rules, packet, &walk)? {
        Some(true) => println!("{packet}: passes"),
        Some(false) => println!("{packet}: is stopped"),
        None => println!("{packet}: is not known"),
    }
    Ok(())
}
