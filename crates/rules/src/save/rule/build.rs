//! What a line with a rule becomes: its headers and its extensions, and whether its chain may have it.

use std::borrow::Cow;

use super::{RuleLine, Verdict};
use crate::error::What;
use crate::ext::kit::args::Loading;
use crate::ext::{
    self, Args, Match, MatchKind, MatchUse, Opaque, OpaqueWord, Support, Target, TargetKind,
    TargetUse,
};
use crate::family::{Family, Hook, TableKind};
use crate::header::{Header, HeaderTests, MaskedAddr};
use crate::lexer::Word;

/// What the reader of a rule has to know of its surroundings.
#[derive(Debug, Clone, Copy)]
pub(in crate::save) struct Setting<'a> {
    pub(in crate::save) family: Family,
    pub(in crate::save) table: &'a str,
    pub(in crate::save) hook: Option<Hook>,
    pub(in crate::save) chain: &'a str,
    pub(in crate::save) strict: bool,
}

/// The parts of a rule that its extensions make up.
#[derive(Debug)]
pub(in crate::save) struct Built {
    pub(in crate::save) matches: Box<[MatchUse]>,
    pub(in crate::save) target: Option<Box<TargetUse>>,
}

impl<'a> RuleLine<'a> {
    /// The headers of the rules that this line makes: one for each pair of listed addresses.
    pub(in crate::save) fn headers(&self) -> impl Iterator<Item = Option<Header>> + '_ {
        self.sources.iter().flat_map(move |source| {
            self.destinations.iter().map(move |destination| self.header(*source, *destination))
        })
    }

    /// Number of sources and destinations: there is a rule for each pair.
    pub(in crate::save) fn list_lengths(&self) -> [usize; 2] {
        [self.sources.len(), self.destinations.len()]
    }

    /// Bytes of the line that list them.
    pub(in crate::save) fn list_bytes(&self) -> usize {
        self.list_bytes
    }

    fn header(
        &self,
        source: Option<MaskedAddr>,
        destination: Option<MaskedAddr>,
    ) -> Option<Header> {
        let tests =
            source.is_some() || destination.is_some() || self.header != HeaderTests::default();
        tests.then(|| HeaderTests { source, destination, ..self.header.clone() }.into())
    }

    /// Checks the rule against its chain.
    pub(in crate::save) fn check(&self, at: Setting<'_>) -> Result<(), What> {
        let column = self.chain.column;
        let refuse =
            |option: &str| Err(What::new(column, format!("no {option} in chain {}", at.chain)));
        let has_input = self.header.input.is_some() || self.header.logical_input.is_some();
        let has_output = self.header.output.is_some() || self.header.logical_output.is_some();
        match at.hook {
            Some(Hook::Brouting | Hook::Prerouting | Hook::Input) if has_output => refuse("-o"),
            Some(Hook::Output | Hook::Postrouting) if has_input => refuse("-i"),
            _ if at.family.is_ip()
                && at.table == TableKind::NAT
                && matches!(self.verdict, Some(Verdict::Drop)) =>
            {
                Err(What::new(column, "no -j DROP in table nat, which is not for filtering"))
            }
            _ => Ok(()),
        }
    }

    /// Reads the extensions.
    pub(in crate::save) fn build(&self, at: Setting<'_>) -> Result<Built, What> {
        let mut matches = Vec::with_capacity(self.extensions.matches.len());
        for loading in &self.extensions.matches {
            matches.push(self.match_use(loading, at)?);
        }
        let target = self.extensions.target.as_ref();
        let target = target.map(|loading| self.target_use(loading, at)).transpose()?;
        Ok(Built { matches: matches.into(), target: target.map(Box::new) })
    }

    fn match_use(
        &self,
        loading: &Loading<'a, MatchKind>,
        at: Setting<'_>,
    ) -> Result<MatchUse, What> {
        let (name, support, body): (_, _, Box<dyn Match>) = match loading.kind {
            Some(kind) => {
                (Cow::Borrowed(kind.name), kind.support, (kind.parse)(&self.args(loading, at))?)
            }
            None => {
                let body = Box::new(Opaque { words: loading.words.clone(), translates: false });
                (loading.name.text.to_string().into(), Support::Parsed, body)
            }
        };
        Ok(MatchUse::new(name, support, body))
    }

    fn target_use(
        &self,
        loading: &Loading<'a, TargetKind>,
        at: Setting<'_>,
    ) -> Result<TargetUse, What> {
        let (name, support, body): (_, _, Box<dyn Target>) = match loading.kind {
            Some(kind) => {
                (Cow::Borrowed(kind.name), kind.support, (kind.parse)(&self.args(loading, at))?)
            }
            None => {
                return unknown_target(&loading.name, loading.words.clone(), at.table, at.family);
            }
        };
        Ok(TargetUse { name, support, body: body.into() })
    }

    fn args<'s, K>(&'s self, loading: &'s Loading<'a, K>, at: Setting<'s>) -> Args<'s>
    where
        'a: 's,
    {
        Args {
            family: at.family,
            table: at.table,
            chain: at.chain,
            hook: at.hook,
            protocol: self.header.protocol,
            fields: &self.header.fields,
            strict: at.strict,
            name: &loading.name.text,
            column: loading.name.column,
            given: &loading.given,
            matches: &self.extensions.matches,
        }
    }
}

/// The target that `-j` names where the table has no such chain and tamis knows no such target: kept, unless it is
/// rather a misspelt one, or a chain that is missing. Targets are written in capitals; what has options is no chain.
pub(in crate::save) fn unknown_target(
    name: &Word<'_>,
    words: Vec<OpaqueWord>,
    table: &str,
    family: Family,
) -> Result<TargetUse, What> {
    let text = &*name.text;
    let refused = |hint: &str| {
        let what = format!("a chain of table {table} or a target, found \"{text}\"{hint}");
        Err(What::new(name.column, what))
    };
    if let Some(meant) = ext::misspelt_target(text, family) {
        return refused(&format!(" (is it {meant}?)"));
    }
    let is_capital = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let of_another_family = ext::TARGETS.iter().any(|kind| kind.name == text);
    if of_another_family || words.is_empty() && !text.bytes().all(is_capital) {
        return refused("");
    }
    let translates = family.is_ip() && table == TableKind::NAT;
    let body: Box<dyn Target> = Box::new(Opaque { words, translates });
    Ok(TargetUse { name: text.to_owned().into(), support: Support::Parsed, body: body.into() })
}
