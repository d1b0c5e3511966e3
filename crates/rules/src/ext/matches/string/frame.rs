//! `--string` of a bridge: the same search in what follows a frame's link header and its first VLAN tag, to the end of
//! the frame. Headers of the network count as any bytes.
//!
//! Source: ebtables(8); kernel `net/netfilter/xt_string.c`, which has no part of a bridge's own.

use super::pattern;
use super::text::{Needle, Text};
use crate::error::What;
use crate::ext::{Args, BRIDGE, Match, MatchKind, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::transit::Transit;

pub(crate) static FRAME_KIND: MatchKind = MatchKind {
    name: "string",
    aliases: &[],
    families: BRIDGE,
    protocol: None,
    options: &[
        Opt::value("string").invertible(),
        Opt::value("string-hex").invertible(),
        Opt::value("string-algo"),
        Opt::value("string-from"),
        Opt::value("string-to"),
        Opt::flag("string-icase"),
    ],
    support: Support::Evaluated,
    parse,
};

/// The search, as ebtables spells it.
#[derive(Debug)]
struct FrameText(Text);

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.any_of(&["string", "string-hex"])?;
    args.one_of(&["string", "string-hex"])?;
    let names = ["string", "string-hex", "string-from", "string-to", "string-algo", "string-icase"];
    Ok(Box::new(FrameText(Text::parse(args, names)?)))
}

impl Match for FrameText {
    /// The tool quotes every text, and prints where the search ends even if that is the end of the frame.
    fn print(&self, to: &mut Printer) {
        let Self(text) = self;
        match pattern::plain_text(&text.pattern) {
            Some(plain) => to.option(text.invert, "string", plain),
            None => to.option(text.invert, "string-hex", pattern::hex_text(&text.pattern)),
        };
        to.option(false, "string-algo", text.algorithm);
        if text.from != 0 {
            to.option(false, "string-from", text.from);
        }
        if text.to != 0 {
            to.option(false, "string-to", text.to);
        }
        if matches!(text.needle, Needle::AnyCase(_)) {
            to.flag(false, "string-icase");
        }
    }

    fn work(&self, bytes: usize) -> u32 {
        self.0.work(bytes)
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        self.0.evaluate(transit)
    }
}
