//! The verdict that a target of the link layer gives when its work is done: `--NAME-target VERDICT`.
//!
//! Source: ebtables-nft(8), arptables-nft(8).

use crate::error::What;
use crate::ext::{Args, Effect};

const VERDICTS: [(&str, Effect); 4] = [
    ("ACCEPT", Effect::Accept),
    ("DROP", Effect::Drop),
    ("CONTINUE", Effect::Continue),
    ("RETURN", Effect::Return),
];

/// The verdict that an option names, or `default`.
pub(crate) fn parse(args: &Args<'_>, option: &str, default: Effect) -> Result<Effect, What> {
    let Some(given) = args.get(option) else { return Ok(default) };
    let found = VERDICTS.iter().find(|(name, _)| *name == given.text());
    found
        .map(|(_, effect)| *effect)
        .ok_or_else(|| given.expected("ACCEPT, DROP, CONTINUE or RETURN"))
}

/// Returns the verdict's name.
pub(crate) fn name(verdict: Effect) -> &'static str {
    VERDICTS.iter().find(|(_, effect)| *effect == verdict).map_or("CONTINUE", |(name, _)| *name)
}
