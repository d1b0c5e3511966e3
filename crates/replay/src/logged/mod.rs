//! Which rules recorded a packet: those at its record's hook whose `-j NFLOG` has its group and prefix.
//!
//! Contract: several may; all are named. The kernel cuts prefixes at 64 bytes, and so are those compared.

use packet::nflog::Record;
use rules::eval::RuleRef;
use rules::model::{Family, Hook};

use crate::rules_file::RulesFile;

/// Bytes that the kernel keeps of a prefix.
const PREFIX: usize = 63;

/// Rules that record packets.
#[derive(Debug, Default)]
pub(crate) struct Loggers(Vec<Logger>);

#[derive(Debug)]
struct Logger {
    family: Family,
    /// Where its chain stands; one that a rule has to jump to may be at any.
    hook: Option<Hook>,
    group: u16,
    prefix: String,
    /// Line and text.
    shown: String,
}

impl Loggers {
    /// Those of these rules.
    pub(crate) fn of(files: &[RulesFile]) -> Self {
        let all = files.iter().flat_map(|file| file.rules().map(move |(at, ..)| (file, at)));
        Self(all.filter_map(|(file, at)| Logger::of(file, at)).collect())
    }

    /// `L12 -A FORWARD … -j NFLOG …` for each that may have written this record.
    pub(crate) fn of_frame(&self, bytes: &[u8]) -> Vec<&str> {
        let Some(record) = Record::read(bytes) else { return Vec::new() };
        let may = self.0.iter().filter(|logger| logger.may_have_written(&record));
        may.map(|logger| &*logger.shown).collect()
    }
}

impl Logger {
    fn of(file: &RulesFile, at: RuleRef) -> Option<Self> {
        let (_, chain, rule) = file.rule(at);
        let text = file.rule_text(at);
        let (_, options) = text.split_once(" -j NFLOG")?;
        let value = |name: &str| options.split_once(name).map(|(_, value)| unquoted(value));
        let group = value("--nflog-group ").and_then(|group| group.parse().ok());
        Some(Self {
            family: file.ruleset.family,
            hook: chain.base.as_ref().map(|base| base.hook),
            group: group.unwrap_or(0),
            prefix: value("--nflog-prefix ").unwrap_or_default(),
            shown: format!("L{} {text}", rule.line),
        })
    }

    fn may_have_written(&self, record: &Record<'_>) -> bool {
        let family = match record.family {
            2 => Family::Ipv4,
            10 => Family::Ipv6,
            _ => return false,
        };
        let at = [Hook::Prerouting, Hook::Input, Hook::Forward, Hook::Output, Hook::Postrouting];
        let hook = record.hook.and_then(|hook| at.get(usize::from(hook)).copied());
        let prefix = self.prefix.as_bytes();
        self.family == family
            && self.group == record.group
            && self.hook.is_none_or(|own| hook.is_none_or(|hook| own == hook))
            && prefix.get(..PREFIX).unwrap_or(prefix) == record.prefix
    }
}

/// The first word, as rules quote it.
fn unquoted(text: &str) -> String {
    let Some(quoted) = text.strip_prefix('"') else {
        return text.split(' ').next().unwrap_or_default().to_owned();
    };
    let mut word = String::new();
    let mut letters = quoted.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => break,
            '\\' => word.extend(letters.next()),
            _ => word.push(letter),
        }
    }
    word
}

#[cfg(test)]
mod tests;
