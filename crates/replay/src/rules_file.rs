//! A rules file as loaded: the ruleset, and what its text says about itself.

use dataplane::{Config, Program};
use rules::eval::{By, Cause, PATIENCE, RuleRef};
use rules::model::{Action, Chain, Policy, Rule, Ruleset, Table};
use rules::save::{FamilyFrom, LoadOptions, Warning, load, print_rule};
use rules::{Backend, Because};
use std::sync::Arc;

use crate::error::Error;
use crate::input::{instead_of_rules, read_text};

/// A loaded rules file. A clone shares its text and its rules.
#[derive(Debug, Clone)]
pub struct RulesFile {
    /// Its name, as given.
    pub file: String,
    /// What named it on the command line: itself, or a folder that it lies in.
    pub given: String,
    /// Its text, as read.
    pub text: Arc<str>,
    /// What the text means.
    pub ruleset: Arc<Ruleset>,
    /// How the family was found.
    pub family_from: FamilyFrom,
    /// What was odd about it.
    pub warnings: Vec<Warning>,
    /// Whether something else than its text gives the backend.
    pub semantics_given: bool,
}

/// The program of these files' rules.
pub(crate) fn program<'f>(
    files: impl IntoIterator<Item = &'f RulesFile>,
    config: &Config,
) -> Program {
    Program::new(files.into_iter().map(|file| Arc::clone(&file.ruleset)), config.clone())
}

impl RulesFile {
    /// Reads and loads a file; `-` is standard input. With `table` only that table is kept.
    ///
    /// # Errors
    /// The file cannot be read, or is refused at a line and column.
    pub fn open(file: &str, options: &LoadOptions<'_>) -> Result<Self, Error> {
        let text = read_text(file)?;
        Self::from_text(file, text, options)
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
            let has = ruleset.tables.iter().map(|table| table.name).collect();
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
            ruleset: Arc::new(ruleset),
            family_from: loaded.family_from,
            warnings: loaded.warnings,
            semantics_given: false,
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
        if let (Some(backend), Some(ruleset)) = (semantics, Arc::get_mut(&mut self.ruleset)) {
            ruleset.backend = backend;
        }
        self.semantics_given |= semantics.is_some();
        self
    }

    /// Every rule with its place, in file order of tables and chains.
    pub fn rules(&self) -> impl Iterator<Item = (RuleRef, &Table, &Chain, &Rule)> {
        self.ruleset.tables.iter().enumerate().flat_map(|(t, table)| {
            table.chains.iter().enumerate().flat_map(move |(c, chain)| {
                chain.rules.iter().enumerate().map(move |(r, rule)| {
                    let at = RuleRef { table: t as u32, chain: c as u32, rule: r as u32 };
                    (at, table, chain, &**rule)
                })
            })
        })
    }

    /// The table, chain and rule at a place that a walk named.
    #[must_use]
    pub fn rule(&self, at: RuleRef) -> (&Table, &Chain, &Rule) {
        let table = &self.ruleset.tables[at.table as usize];
        let chain = &table.chains[at.chain as usize];
        (table, chain, &chain.rules[at.rule as usize])
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
            By::Rule(at) => self.rule_text(at),
            By::HotDrop(at) => format!("hot drop in {}", self.rule_text(at)),
            By::Policy { table, chain } => {
                let table = &self.ruleset.tables[table as usize];
                let chain = &table.chains[chain as usize];
                let policy = chain.base.map_or_else(String::new, |base| base.policy.to_string());
                format!("policy {policy} of {}/{}", table.name, chain.name)
            }
        }
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
                let (line, target) = (self.rule(at).2.line, self.cause_text(at, Cause::Target));
                format!("{}:{line}: {target} gives connections what others leave", self.file)
            }
            Because::Rule(at, cause) => {
                let line = self.rule(at).2.line;
                if cause == Cause::Steps {
                    return format!("{}:{line}: walks from here may be too long", self.file);
                }
                format!("{}:{line}: {}", self.file, self.cause_text(at, cause))
            }
        }
    }

    /// What a rule's answer depends on, in the words of the rule.
    #[must_use]
    pub fn cause_text(&self, at: RuleRef, cause: Cause) -> String {
        let (.., rule) = self.rule(at);
        match cause {
            Cause::Input => "-i: the input interface is not known".to_owned(),
            Cause::Output => "-o: the output interface is not known".to_owned(),
            Cause::Bytes => {
                "header bytes not captured, or translated to what is not known".to_owned()
            }
            Cause::Match(index) => match rule.matches.get(usize::from(index)) {
                Some(used) => match used.body.asks_for() {
                    Some(missing) => format!("-m {}: {missing}", used.name),
                    None => format!("-m {}", used.name),
                },
                None => "a match".to_owned(),
            },
            Cause::Target => match &rule.action {
                Action::Target(target) => format!("-j {}", target.name),
                _ => "its target".to_owned(),
            },
            Cause::Steps => "a walk that is too long, and was given up".to_owned(),
            Cause::Patience => format!(
                "walks that are too long: after {PATIENCE} of them the chain is given up at once"
            ),
            Cause::Stopped => "the end of the replay, which was stopped".to_owned(),
        }
    }
}
