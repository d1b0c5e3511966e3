//! Changes as text: what `iptables-restore --noflush` reads.
//!
//! `*table` and `COMMIT` lines, `:CHAIN POLICY`, and the commands `-A -I -R -D -F -N -X -E -P`. All of the text
//! is one transaction, however many tables it names.

use super::{Numbers, Refused, Revision, Transaction, Which};
use crate::error::{LoadError, What};
use crate::lexer::{Word, words};
use crate::model::{FallThrough, Rule, TableName};
use crate::save::line::Chain;
use crate::save::{chain_name, line, policy};

impl Revision {
    /// The revision that a text makes of this one.
    ///
    /// # Errors
    /// The first line that is refused, and why; then nothing has changed.
    pub fn changed_by(&self, text: &str, numbers: &mut Numbers) -> Result<Self, LoadError> {
        let mut transaction = Transaction::new(self, numbers);
        let mut table = None;
        for (index, line) in text.lines().enumerate() {
            if let Err(what) = transaction.line(line.trim_end(), &mut table) {
                transaction.abort();
                return Err(what.at_line(u32::try_from(index + 1).unwrap_or(u32::MAX)));
            }
        }
        Ok(transaction.commit())
    }
}

/// What a command's words are, read one by one.
struct Command<'a> {
    list: Vec<Word<'a>>,
    end: u32,
}

impl<'a> Command<'a> {
    fn word(&self, index: usize, what: &str) -> Result<&Word<'a>, What> {
        self.list.get(index).ok_or_else(|| What::new(self.end, what))
    }

    /// The number at this place, if one is there.
    fn number(&self, index: usize) -> Option<usize> {
        self.list.get(index)?.text.parse().ok()
    }

    /// Turns the command into `-A CHAIN …`, with its words from this one on.
    fn appending(mut self, from: usize) -> Self {
        self.list.drain(2..from.min(self.list.len()).max(2));
        if let Some(command) = self.list.first_mut() {
            command.text = "-A".into();
        }
        self
    }
}

impl Transaction<'_> {
    /// Takes one line.
    fn line(&mut self, text: &str, table: &mut Option<TableName>) -> Result<(), What> {
        match text.as_bytes().first() {
            None | Some(b'#') => return Ok(()),
            Some(b'*') => {
                let draft =
                    self.table_or_new(&text[1..]).map_err(|why| What::new(2, why.what()))?;
                *table = Some(draft.table.name.clone());
                return Ok(());
            }
            _ if text == "COMMIT" => {
                *table = None;
                return Ok(());
            }
            _ => {}
        }
        let Some(table) = table.as_deref() else { return Err(What::new(1, "a *table line first")) };
        let end = u32::try_from(text.len() + 1).unwrap_or(u32::MAX);
        if let Some(declared) = text.strip_prefix(':') {
            return self.declare(table, Command { list: words(declared, 2)?, end });
        }
        self.command(table, Command { list: words(text, 1)?, end })
    }

    /// `:CHAIN POLICY [counters]`: a user chain is made, or emptied if it is there.
    fn declare(&mut self, table: &str, declared: Command<'_>) -> Result<(), What> {
        let name = declared.word(0, "the chain")?;
        let policy = declared.word(1, "the chain's policy")?;
        let refused = |why: Refused| What::new(name.column, why.what());
        let found = self.chain(table, &name.text);
        let is_user = found.is_none_or(|chain| self.hook(table, chain).is_none());
        match (policy::user(&policy.text, self.family), found) {
            (Some(FallThrough::Return), Some(_)) if !is_user => {
                self.flush(table, Some(&name.text)).map_err(refused)
            }
            (Some(fall_through), _) if is_user => {
                match found {
                    Some(_) => self.flush(table, Some(&name.text)).map_err(refused)?,
                    None => self.add(table, name)?,
                }
                self.fall_through(table, name, fall_through)
            }
            _ => self.policy(table, name, policy),
        }
    }

    /// Sets what a made or emptied chain does at its end; a chain that is now a built-in one has a policy.
    fn fall_through(
        &mut self,
        table: &str,
        name: &Word<'_>,
        fall_through: FallThrough,
    ) -> Result<(), What> {
        let hook = self.chain(table, &name.text).and_then(|chain| self.hook(table, chain));
        let set = match (fall_through, hook) {
            (FallThrough::Policy(policy), Some(_)) => self.set_policy(table, &name.text, policy),
            (FallThrough::Return, Some(_)) => Ok(()),
            (fall_through, None) => self.set_fall_through(table, &name.text, fall_through),
        };
        set.map_err(|why| What::new(name.column, why.what()))
    }

    fn add(&mut self, table: &str, name: &Word<'_>) -> Result<(), What> {
        chain_name::check(name)?;
        self.new_chain(table, &name.text).map_err(|why| What::new(name.column, why.what()))
    }

    fn policy(&mut self, table: &str, name: &Word<'_>, policy: &Word<'_>) -> Result<(), What> {
        let policy = policy::built_in(policy)?;
        self.set_policy(table, &name.text, policy).map_err(|why| What::new(name.column, why.what()))
    }

    fn command(&mut self, table: &str, command: Command<'_>) -> Result<(), What> {
        let verb = command.word(0, "a command")?.clone();
        if let ("-F" | "--flush", None) = (&*verb.text, command.list.get(1)) {
            return self.flush(table, None).map_err(|why| What::new(verb.column, why.what()));
        }
        let chain = command.word(1, "the chain")?.clone();
        let name = &*chain.text;
        let refused = |why: Refused| What::new(chain.column, why.what());
        match &*verb.text {
            "-A" | "--append" => {
                let rules = self.rules(table, &chain, command)?;
                self.insert(table, name, None, rules).map_err(refused)
            }
            "-I" | "--insert" => {
                let number = command.number(2);
                let from = if number.is_some() { 3 } else { 2 };
                let rules = self.rules(table, &chain, command.appending(from))?;
                self.insert(table, name, Some(number.unwrap_or(1)), rules).map_err(refused)
            }
            "-R" | "--replace" => {
                let none = || What::new(command.end, "the number of a rule");
                let number = command.number(2).ok_or_else(none)?;
                let rules = self.rules(table, &chain, command.appending(3))?;
                self.replace(table, name, number, rules).map_err(refused)
            }
            "-D" | "--delete" => self.take(table, &chain, command),
            "-F" | "--flush" => self.flush(table, Some(name)).map_err(refused),
            "-N" | "--new-chain" => self.add(table, &chain),
            "-X" | "--delete-chain" => self.delete_chain(table, name).map_err(refused),
            "-E" | "--rename-chain" => {
                let new = command.word(2, "the new name")?;
                chain_name::check(new)?;
                self.rename_chain(table, name, &new.text).map_err(refused)
            }
            "-P" | "--policy" => self.policy(table, &chain, command.word(2, "the policy")?),
            other => {
                let what = format!("-A -I -R -D -F -N -X -E or -P, found \"{other}\"");
                Err(What::new(verb.column, what))
            }
        }
    }

    /// `-D CHAIN NUMBER` or `-D CHAIN RULE`.
    fn take(&mut self, table: &str, chain: &Word<'_>, command: Command<'_>) -> Result<(), What> {
        let refused = |why: Refused| What::new(chain.column, why.what());
        if let (Some(number), 3) = (command.number(2), command.list.len()) {
            return self.delete(table, &chain.text, &Which::Number(number)).map_err(refused);
        }
        for rule in self.rules(table, chain, command.appending(2))? {
            self.delete(table, &chain.text, &Which::Same(Box::new(rule))).map_err(refused)?;
        }
        Ok(())
    }

    fn rules(
        &self,
        table: &str,
        chain: &Word<'_>,
        command: Command<'_>,
    ) -> Result<Vec<Rule>, What> {
        let none = || What::new(chain.column, format!("a chain, found \"{}\"", chain.text));
        let index = self.chain(table, &chain.text).ok_or_else(none)?;
        let hook = self.hook(table, index);
        let at = Chain { family: self.family, table, hook, name: &chain.text };
        line::rules(command.list, command.end, at, |name| self.chain(table, name))
    }
}
