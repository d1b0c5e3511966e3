//! A rules file as loaded: the ruleset, and what its text says about itself.

use dataplane::Program;
use nft::lower::Unknown;
use pktio::file::NamedBy;
use rules::eval::{By, Cause, PATIENCE, RuleRef};
use rules::model::{Action, Chain, Family, Hook, Policy, Rule, Ruleset, Table};
use rules::save::{FamilyFrom, LoadOptions, Warning, load, print_rule};
use rules::{Backend, Because};
use std::sync::Arc;

use crate::error::Error;
use crate::input::{instead_of_rules, read_text, text_of};
use crate::nftables::{self, Lacking, Language, Listing, OfFamily};
use crate::setup::Setup;

/// A loaded rules file. A clone shares its text and its rules.
#[derive(Debug, Clone)]
pub struct RulesFile {
    /// Name of the file, as given.
    pub file: String,
    /// What named the file on the command line: itself, or a folder that it lies in.
    pub given: String,
    /// Text of the file, as read; the texts of the other files follow.
    pub text: Arc<str>,
    /// Files of the same family whose tables are evaluated along with these, in the order of their texts.
    pub others: Vec<OtherFile>,
    /// What the text means.
    pub ruleset: Arc<Ruleset>,
    /// How the family was found.
    pub family_from: FamilyFrom,
    /// What was odd about it.
    pub warnings: Vec<Warning>,
    /// Whether something else than its text gives the backend.
    pub semantics_given: bool,
    /// The listing of nftables that the rules are of; other families share it.
    pub listing: Option<Arc<Listing>>,
    /// What of the listing is not evaluated.
    pub(crate) lacking: Lacking,
}

/// Another rules file of a family: where its text begins.
#[derive(Debug, Clone)]
pub struct OtherFile {
    /// Name of the file, as given.
    pub file: String,
    /// Lines of the text before it.
    pub lines: u32,
    /// Whether it is a listing of nftables.
    pub is_listing: bool,
}

/// The program of these files' rules.
pub(crate) fn program<'f>(
    files: impl IntoIterator<Item = &'f RulesFile>,
    Setup { config, start }: &Setup,
) -> Program {
    let rulesets = files.into_iter().map(|file| Arc::clone(&file.ruleset));
    Program::starting(rulesets, config.clone(), start.clone())
}

fn text_by(file: &str, by: NamedBy<'_>) -> Result<String, Error> {
    match by {
        NamedBy::Person => read_text(file),
        by => text_of(file, by),
    }
}

impl RulesFile {
    /// Reads and loads a file; `-` is standard input. With `table` only that table is kept.
    ///
    /// # Errors
    /// The file cannot be read, or is refused at a line and column.
    pub fn open(file: &str, options: &LoadOptions<'_>) -> Result<Self, Error> {
        Self::open_by(file, NamedBy::Person, options)
    }

    /// Reads and loads a file of save text or of nftables, which makes several: one for each family.
    pub(crate) fn open_all(
        file: &str,
        by: NamedBy<'_>,
        options: &LoadOptions<'_>,
    ) -> Result<Vec<Self>, Error> {
        let text = text_by(file, by)?;
        match nftables::language_of(&text) {
            Some(language) => Self::of_nftables(file, text, language, options),
            None => Ok(vec![Self::from_text(file, text, options)?]),
        }
    }

    /// The rules of a listing of nftables, for each family.
    fn of_nftables(
        file: &str,
        text: String,
        language: Language,
        options: &LoadOptions<'_>,
    ) -> Result<Vec<Self>, Error> {
        let listing = Arc::new(Listing::read(file, text, language)?);
        let families = nftables::families(file, &listing, options)?;
        let one = |of_family| Self::of_family(file, &listing, of_family);
        let mut files: Vec<Self> = families.into_iter().map(one).collect();
        if let Some(first) = files.first_mut() {
            first.warnings.extend(nftables::doubts(&listing));
        }
        if let [first, second] = files.as_mut_slice() {
            // Most of what one family lacks the other lacks, too.
            second.warnings.retain(|warning| !first.warnings.contains(warning));
        }
        Ok(files)
    }

    /// What packets of one family walk of a listing.
    pub(crate) fn of_family(file: &str, listing: &Arc<Listing>, of_family: OfFamily) -> Self {
        let OfFamily { ruleset, lacking, warnings } = of_family;
        Self {
            file: file.to_owned(),
            given: file.to_owned(),
            text: Arc::clone(&listing.text),
            others: Vec::new(),
            ruleset: Arc::new(ruleset),
            family_from: FamilyFrom::Text,
            warnings,
            semantics_given: false,
            listing: Some(Arc::clone(listing)),
            lacking,
        }
    }

    /// Takes in the tables of a listing, which `sort` puts among these; before anybody else has the rules.
    pub(crate) fn join_native(&mut self, native: Self, sort: &dyn Fn(&mut Ruleset)) {
        (self.listing, self.lacking) = (native.listing.clone(), Arc::clone(&native.lacking));
        self.join(native, false);
        if let Some(ruleset) = Arc::get_mut(&mut self.ruleset) {
            sort(ruleset);
        }
    }

    /// The same of a file that somebody names.
    pub(crate) fn open_by(
        file: &str,
        by: NamedBy<'_>,
        options: &LoadOptions<'_>,
    ) -> Result<Self, Error> {
        Self::from_text(file, text_by(file, by)?, options)
    }

    /// Loads text that came from `file`.
    ///
    /// # Errors
    /// It is refused at a line and column.
    pub fn from_text(file: &str, text: String, options: &LoadOptions<'_>) -> Result<Self, Error> {
        let loaded = load(&text, options).map_err(|source| {
            let file = file.to_owned();
            match instead_of_rules(&text) {
                Some(found) => Error::Swapped { file, expected: "iptables-save text", found },
                None => Error::Rules { file, source },
            }
        })?;
        let mut ruleset = loaded.ruleset;
        if let Some(name) = options.table {
            let has = ruleset.tables.iter().map(|table| table.name.clone()).collect();
            ruleset.tables.retain(|table| table.name == name);
            if ruleset.tables.is_empty() {
                let table = name.to_owned();
                return Err(Error::NoTable { file: file.to_owned(), table, has });
            }
        }
        Ok(Self {
            file: file.to_owned(),
            given: file.to_owned(),
            text: text.into(),
            others: Vec::new(),
            ruleset: Arc::new(ruleset),
            family_from: loaded.family_from,
            warnings: loaded.warnings,
            semantics_given: false,
            listing: None,
            lacking: Lacking::default(),
        })
    }

    /// Says what named it on the command line.
    #[must_use]
    pub fn given_as(mut self, name: &str) -> Self {
        name.clone_into(&mut self.given);
        self
    }

    /// Gives the backend, whatever the text says; before anybody else has the rules.
    #[must_use]
    pub fn evaluated_as(mut self, semantics: Option<Backend>) -> Self {
        if self.listing.is_some() {
            return self;
        }
        if let (Some(backend), Some(ruleset)) = (semantics, Arc::get_mut(&mut self.ruleset)) {
            ruleset.evaluate_as(backend);
        }
        self.semantics_given |= semantics.is_some();
        self
    }

    /// The rules, unless somebody else has them.
    pub(crate) fn rules_mut(&mut self) -> Option<&mut Ruleset> {
        Arc::get_mut(&mut self.ruleset)
    }

    /// The rules alone, unless somebody else has them.
    pub(crate) fn into_rules(self) -> Option<Ruleset> {
        Arc::into_inner(self.ruleset)
    }

    /// Takes in a file of tables that the other implementation holds, registered before these or after them; before
    /// anybody else has the rules.
    pub(crate) fn join(&mut self, other: Self, is_earlier: bool) {
        let text = match self.text.ends_with('\n') {
            true => self.text.to_string(),
            false => format!("{}\n", self.text),
        };
        let lines = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
        let (Some(ruleset), Some(tables)) =
            (Arc::get_mut(&mut self.ruleset), Arc::into_inner(other.ruleset))
        else {
            return;
        };
        if ruleset.backend == tables.backend && other.listing.is_none() {
            // A text that does not say so stands for one of the host.
            ruleset.evaluate_as(Backend::Nft);
        }
        ruleset.join(tables, lines, is_earlier);
        self.text = format!("{text}{}", other.text).into();
        let moved = |warning: Warning| Warning { line: warning.line + lines, ..warning };
        self.warnings.extend(other.warnings.into_iter().map(moved));
        let is_listing = other.listing.is_some();
        self.others.push(OtherFile { file: other.file, lines, is_listing });
    }

    /// The names of the file and of the others.
    #[must_use]
    pub fn names(&self) -> String {
        let others = self.others.iter().map(|other| format!(" + {}", other.file));
        others.fold(self.file.clone(), |names, other| names + &other)
    }

    /// A line of the text by its file, and the number that it has there.
    #[must_use]
    pub fn line(&self, line: u32) -> (&str, u32) {
        match self.others.iter().rfind(|other| line > other.lines) {
            Some(other) => (&other.file, line - other.lines),
            None => (&self.file, line),
        }
    }

    /// The text of one of its files, the first one being 0.
    pub(crate) fn part(&self, place: usize) -> &str {
        let start = |line: u32| {
            let mut ends = self.text.match_indices('\n');
            let end = (line as usize).checked_sub(1).and_then(|before| ends.nth(before));
            end.map_or(0, |(end, _)| end + 1)
        };
        let from = place.checked_sub(1).and_then(|before| self.others.get(before));
        let text = &self.text[from.map_or(0, |other| start(other.lines))..];
        match self.others.get(place) {
            Some(next) => &self.text[self.text.len() - text.len()..start(next.lines)],
            None => text,
        }
    }

    /// Every rule with its place, in file order of tables and chains; of a rule in several parts the last one, which has
    /// the counters of all that decide.
    pub fn rules(&self) -> impl Iterator<Item = (RuleRef, &Table, &Chain, &Rule)> {
        self.ruleset.tables.iter().enumerate().flat_map(|(t, table)| {
            table.chains.iter().enumerate().flat_map(move |(c, chain)| {
                let rules = chain.rules.iter().enumerate();
                let whole = rules.filter(|(r, _)| !chain.goes_on(*r));
                whole.map(move |(r, rule)| {
                    let at = RuleRef { table: t as u32, chain: c as u32, rule: r as u32 };
                    (at, table, chain, &**rule)
                })
            })
        })
    }

    /// What its rules are for, as reports say.
    #[must_use]
    pub fn tool(&self) -> &'static str {
        match (&self.listing, !self.others.is_empty(), self.ruleset.family) {
            (Some(_), false, Family::Ipv6) => "nft for IPv6",
            (Some(_), false, _) => "nft for IPv4",
            (Some(_), true, Family::Ipv6) => "ip6tables and nft",
            (Some(_), true, _) => "iptables and nft",
            (None, _, family) => family.tool(),
        }
    }

    /// A rule's text where its table and its chain are known: of nft with its comment and its handle.
    #[must_use]
    pub fn text_in_chain(&self, at: RuleRef) -> String {
        let (table, chain, rule) = self.rule(at);
        let mut text = self.rule_text(at);
        let start = match &rule.listed {
            Some(_) => table.name.len() + chain.name.len() + 2,
            None => "-A ".len() + chain.name.len() + 1,
        };
        if text.len() > start {
            text.drain(..start);
        }
        text
    }

    /// The table, chain and rule at a place that a walk named.
    #[must_use]
    pub fn rule(&self, at: RuleRef) -> (&Table, &Chain, &Rule) {
        let table = &self.ruleset.tables[at.table as usize];
        let chain = &table.chains[at.chain as usize];
        (table, chain, &chain.rules[at.rule as usize])
    }

    /// The number of a rule in its chain, from 1. A rule of nft may be walked in several parts.
    #[must_use]
    pub fn number(&self, at: RuleRef) -> u32 {
        let listed = self.rule(at).2.listed.as_ref();
        listed.map_or(at.rule + 1, |listed| listed.number)
    }

    /// A rule's canonical text.
    #[must_use]
    pub fn rule_text(&self, at: RuleRef) -> String {
        let (table, chain, rule) = self.rule(at);
        print_rule(self.ruleset.family, table, chain, rule)
    }

    /// What decided, in a few words: the rule's text, or the policy.
    #[must_use]
    pub fn by_text(&self, by: By) -> String {
        match by {
            By::Rule(at) => match self.of_other(at.table) {
                Some(title) if self.rule(at).2.listed.is_none() => {
                    format!("{title} {}", self.rule_text(at))
                }
                _ => self.rule_text(at),
            },
            By::HotDrop(at) => format!("hot drop in {}", self.rule_text(at)),
            By::Policy { table, chain } => {
                let table = &self.ruleset.tables[table as usize];
                let chain = &table.chains[chain as usize];
                let policy = chain.base.map_or_else(String::new, |base| base.policy.to_string());
                match self.ruleset.family.table(&table.name) {
                    None => {
                        format!("policy {} of {} {}", policy.to_lowercase(), table.name, chain.name)
                    }
                    Some(_) => {
                        format!("policy {policy} of {}/{}", self.ruleset.title(table), chain.name)
                    }
                }
            }
        }
    }

    /// The names of a table and of the base chain by which packets come to it at a hook.
    #[must_use]
    pub fn base_chain(&self, table: u32, chain: Option<u32>, hook: Hook) -> (&str, &str) {
        let table = &self.ruleset.tables[table as usize];
        let chain = chain.map_or(hook.chain_name(), |chain| &table.chains[chain as usize].name);
        (self.ruleset.title(table), chain)
    }

    /// The name of a table that the other implementation holds.
    #[must_use]
    pub fn of_other(&self, table: u32) -> Option<&str> {
        let table = self.ruleset.tables.get(table as usize)?;
        (table.backend != self.ruleset.backend).then(|| self.ruleset.title(table))
    }

    /// Whether what decided was a drop or a reject.
    #[must_use]
    pub fn drops(&self, by: &By) -> bool {
        match *by {
            By::HotDrop(_) => true,
            By::Rule(at) => !matches!(self.rule(at).2.action, Action::Accept),
            By::Policy { table, chain } => {
                let chain = &self.ruleset.tables[table as usize].chains[chain as usize];
                chain.base.is_some_and(|base| base.policy == Policy::Drop)
            }
        }
    }

    /// Whether what decided tells the sender of a packet that it was dropped.
    #[must_use]
    pub fn rejects(&self, by: &By) -> bool {
        let By::Rule(at) = *by else { return false };
        matches!(&self.rule(at).2.action, Action::Target(target) if target.body.answer().is_some())
    }

    /// Line of what decided; a policy's is that of its chain.
    #[must_use]
    pub fn by_line(&self, by: By) -> u32 {
        match by {
            By::Rule(at) | By::HotDrop(at) => self.rule(at).2.line,
            By::Policy { table, chain } => {
                self.ruleset.tables[table as usize].chains[chain as usize].line
            }
        }
    }

    /// Why all packets depend on each other under these rules.
    #[must_use]
    pub fn because_text(&self, because: Because) -> String {
        match because {
            Because::Nat(at) => {
                let (file, line) = self.line(self.rule(at).2.line);
                let target = self.cause_text(at, Cause::Target);
                format!("{file}:{line}: {target} gives connections what others leave")
            }
            Because::Rule(at, cause) => {
                let (file, line) = self.line(self.rule(at).2.line);
                if cause == Cause::Steps {
                    return format!("{file}:{line}: walks from here may be too long");
                }
                format!("{file}:{line}: {}", self.cause_text(at, cause))
            }
        }
    }

    /// What a rule's answer depends on, in the words of the rule.
    #[must_use]
    pub fn cause_text(&self, at: RuleRef, cause: Cause) -> String {
        let (.., rule) = self.rule(at);
        let words = if rule.listed.is_some() { ["iifname", "oifname"] } else { ["-i", "-o"] };
        match cause {
            Cause::Input => format!("{}: the input interface is not known", words[0]),
            Cause::Output => format!("{}: the output interface is not known", words[1]),
            Cause::Bytes => {
                "header bytes not captured, or translated to what is not known".to_owned()
            }
            Cause::Match(index) => match rule.matches.get(usize::from(index)) {
                Some(used) => {
                    let option = if rule.listed.is_some() { "" } else { "-m " };
                    match used.body.asks_for() {
                        Some(missing) => format!("{option}{}: {missing}", used.name),
                        None => format!("{option}{}{}", used.name, nftables::hint(&used.name)),
                    }
                }
                None => "a match".to_owned(),
            },
            Cause::Target if rule.listed.is_some() => self.lacks(at),
            Cause::Target => match &rule.action {
                Action::Target(target) => format!("-j {}", target.name),
                _ => "its target".to_owned(),
            },
            Cause::Past => "what came before the packet".to_owned(),
            Cause::Steps => "a walk that is too long, and was given up".to_owned(),
            Cause::Patience => format!(
                "walks that are too long: after {PATIENCE} of them the chain is given up at once"
            ),
            Cause::Stopped => "the end of the replay, which was stopped".to_owned(),
        }
    }

    /// What is not evaluated of a rule that is listed.
    fn lacks(&self, at: RuleRef) -> String {
        let (table, chain, _) = self.rule(at);
        let number = self.number(at);
        let is_it = |it: &&Unknown| {
            let of_table = table.name.split_once(' ');
            let of_table = of_table == Some((it.family.name(), &*it.table));
            of_table && it.chain == chain.name && it.rule == number
        };
        match self.lacking.iter().find(is_it) {
            Some(lacking) => {
                let hint = lacking.causes.first().map_or("", |cause| nftables::hint(cause));
                format!("{}{hint}", lacking.causes.join(", "))
            }
            None => "its statements".to_owned(),
        }
    }
}
