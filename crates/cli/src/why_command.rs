//! `tamis why`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use dataplane::Judgement;
use replay::{spec, why};

use crate::args::{WhyArgs, standard_input_once};

/// Tells one packet's story.
pub(crate) fn run(args: &WhyArgs) -> Result<ExitCode> {
    standard_input_once(&args.rules, &args.captures)?;
    let files = [args.walk.open(&args.rules)?];
    let config = args.walk.config()?;
    let number: Option<u64> = args.packet.trim().parse().ok();
    let story = match (number, args.captures.is_empty()) {
        (Some(number), false) => why::of_capture(&files, &config, &args.captures, number)?,
        (None, true) => why::of_spec(&files, &config, &spec::parse(&args.packet)?),
        (Some(_), true) => bail!("expected a CAPTURE in which --packet NUMBER counts"),
        (None, false) => {
            bail!("expected --packet NUMBER with a capture, found \"{}\"", args.packet)
        }
    };
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{:#}", story.json())?;
    } else {
        out.write_all(story.text(args.all).as_bytes())?;
    }
    out.flush()?;
    Ok(match story.judgement() {
        Judgement::Accept(_) => ExitCode::SUCCESS,
        Judgement::Drop(_) | Judgement::Reject(_) => ExitCode::from(1),
        Judgement::Unknown | Judgement::Skip(_) => ExitCode::from(4),
    })
}
