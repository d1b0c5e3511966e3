//! `-j IDLETIMER`: restarts a timer that reports idle interfaces to a program, and goes on.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_IDLETIMER.c`.

use crate::error::What;
use crate::ext::{Args, Effect, Given, IP, Opt, Printer, Support, Target, TargetKind};
use crate::transit::Transit;
use crate::value;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "IDLETIMER",
    families: IP,
    options: &[Opt::value("timeout"), Opt::value("label"), Opt::flag("alarm")],
    support: Support::Evaluated,
    parse,
};

const MAX_LABEL: usize = 27;
/// The kernel counts milliseconds in a signed number of 32 bits.
const MAX_SECONDS: u64 = i32::MAX as u64 / 1000 - 1;
/// Names that the kernel keeps for other entries of the timer's directory in sysfs.
const RESERVED: [&str; 3] = ["power", "subsystem", "uevent"];

#[derive(Debug)]
struct Idletimer {
    seconds: u32,
    label: Box<str>,
    alarm: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    let timeout = args.required("timeout")?;
    let seconds = value::number(timeout.text(), MAX_SECONDS)
        .filter(|seconds| *seconds > 0)
        .ok_or_else(|| timeout.expected(format!("seconds 1-{MAX_SECONDS}")))?;
    let label = label(args.required("label")?)?.into();
    Ok(Box::new(Idletimer { seconds: seconds as u32, label, alarm: args.has("alarm") }))
}

fn label<'g>(given: &'g Given<'_>) -> Result<&'g str, What> {
    let label = value::cut(given.text(), MAX_LABEL);
    if matches!(label, "" | "." | "..") || label.contains('/') || RESERVED.contains(&label) {
        return Err(given.expected("a label that can name a file in sysfs"));
    }
    Ok(label)
}

impl Target for Idletimer {
    fn print(&self, to: &mut Printer) {
        to.option(false, "timeout", self.seconds).name("label", &self.label);
        if self.alarm {
            to.flag(false, "alarm");
        }
    }

    fn apply(&self, _transit: &mut Transit<'_, '_>) -> Effect {
        Effect::Continue
    }

    fn only_watches(&self) -> bool {
        true
    }
}
