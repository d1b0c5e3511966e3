//! `-m comment`: a remark; it matches every packet.
//!
//! Source: iptables-extensions(8).

use crate::error::What;
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::predicate::Predicate;
use crate::transit::Transit;

const MAX_BYTES: usize = 255;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "comment",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("comment")],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Comment {
    text: Box<str>,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let given = args.required("comment")?;
    if given.text().len() > MAX_BYTES {
        return Err(given.expected(format!("at most {MAX_BYTES} bytes")));
    }
    Ok(Box::new(Comment { text: given.text().into() }))
}

impl Match for Comment {
    fn print(&self, to: &mut Printer) {
        to.string(false, "comment", &self.text);
    }

    fn evaluate(&self, _transit: &Transit<'_, '_>) -> Outcome {
        Outcome::YES
    }

    fn predicate(&self) -> Option<Predicate> {
        Some(Predicate::ALWAYS)
    }
}
