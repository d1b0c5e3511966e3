//! `-j LED`: flashes a light and goes on.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_LED.c`.

use crate::error::What;
use crate::ext::{Args, Effect, IP, Opt, Printer, Support, Target, TargetKind};
use crate::transit::Transit;
use crate::value;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "LED",
    families: IP,
    options: &[
        Opt::value("led-trigger-id"),
        Opt::value("led-delay"),
        Opt::flag("led-always-blink"),
    ],
    support: Support::Evaluated,
    parse,
};

const MAX_ID: usize = 16;

#[derive(Debug)]
struct Led {
    id: Box<str>,
    delay: Delay,
    always_blink: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delay {
    Milliseconds(u32),
    Forever,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    let id = args.required("led-trigger-id")?;
    if id.text().len() > MAX_ID {
        return Err(id.expected(format!("at most {MAX_ID} bytes")));
    }
    let delay = match args.get("led-delay") {
        Some(given) => {
            delay(given.text()).ok_or_else(|| given.expected("milliseconds of 32 bits, or inf"))?
        }
        None => Delay::Milliseconds(0),
    };
    Ok(Box::new(Led { id: id.text().into(), delay, always_blink: args.has("led-always-blink") }))
}

fn delay(text: &str) -> Option<Delay> {
    if text.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("inf")) {
        return Some(Delay::Forever);
    }
    value::u32(text)
        .map(|delay| if delay == u32::MAX { Delay::Forever } else { Delay::Milliseconds(delay) })
}

impl Target for Led {
    fn print(&self, to: &mut Printer) {
        // This name is quoted even when it need not be.
        let id = self.id.replace('\\', r"\\").replace('"', r#"\""#);
        to.option(false, "led-trigger-id", format_args!("\"{id}\""));
        match self.delay {
            Delay::Milliseconds(0) => {}
            Delay::Milliseconds(delay) => _ = to.option(false, "led-delay", delay),
            Delay::Forever => _ = to.option(false, "led-delay", "inf"),
        }
        if self.always_blink {
            to.flag(false, "led-always-blink");
        }
    }

    fn apply(&self, _transit: &mut Transit<'_, '_>) -> Effect {
        Effect::Continue
    }

    fn only_watches(&self) -> bool {
        true
    }
}
