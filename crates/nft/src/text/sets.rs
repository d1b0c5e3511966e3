//! Sets and maps of a table.

use super::{Parser, Result};
use crate::expr::{Ct, Field};
use crate::model::{KeyType, SET_FLAGS, Set};
use crate::stmt::{KINDS, Stmt};
use crate::types::{self, INTEGER, Ty};

impl Parser<'_> {
    /// Reads `{ type …; elements = … }` of a set or map.
    pub(super) fn set_block(&mut self, name: &str, map: bool) -> Result<()> {
        self.handle();
        self.lex.count = None;
        self.expect("{")?;
        let mut set = Set {
            name: name.into(),
            handle: self.handle(),
            comment: None,
            key: KeyType::Types(Vec::new()),
            data: None,
            flags: 0,
            timeout: None,
            gc_interval: None,
            size: None,
            memory: false,
            auto_merge: false,
            stmts: Vec::new(),
            elements: Vec::new(),
        };
        loop {
            self.ends();
            if self.eat("}") {
                break;
            }
            if self.directive()? {
                continue;
            }
            let is_line = !self.is("elements") && !self.is("auto-merge");
            self.set_line(&mut set)?;
            if is_line {
                self.separator()?;
            }
        }
        if set.elements.is_empty()
            && self.lex.count.take().is_some_and(|count| count > 0)
            && set.flags & 8 == 0
        {
            return Err(self.refused(&format!(
                "set {name} lacks its elements: expected a listing without -t"
            )));
        }
        if set.key.types().is_empty() {
            return Err(self.refused(&format!("expected a type or typeof in set {name}")));
        }
        if map && set.data.is_none() {
            return Err(self.refused(&format!("expected `: TYPE` of what map {name} gives")));
        }
        crate::normal::set(&mut set);
        let sets = &mut self.here().sets;
        match sets.iter_mut().find(|other| other.name == set.name) {
            Some(old) if old.key != set.key || old.data != set.data => {
                return Err(self.refused(&format!("set {name} has another type already")));
            }
            Some(old) => {
                let elements = std::mem::take(&mut set.elements);
                old.elements.extend(elements);
            }
            None => sets.push(set),
        }
        Ok(())
    }

    fn set_line(&mut self, set: &mut Set) -> Result<()> {
        let before = set.stmts.len();
        loop {
            let word = self.peek().to_owned();
            let Some(stmt) = Stmt::state(&word, self)? else { break };
            set.stmts.push(stmt);
        }
        if set.stmts.len() > before {
            return Ok(());
        }
        let word = self.word("a line of a set or }")?;
        let typed = !set.key.types().is_empty();
        if typed == matches!(word.as_str(), "type" | "typeof")
            && matches!(word.as_str(), "type" | "typeof" | "elements")
        {
            return Err(
                self.refused("expected one line with the type of a set, before its elements")
            );
        }
        match word.as_str() {
            "type" => {
                set.key = KeyType::Types(self.types()?);
                if self.eat(":") {
                    self.eat("interval");
                    set.data = Some(KeyType::Types(self.types()?));
                }
            }
            "typeof" => {
                set.key = KeyType::Of(self.left()?);
                if self.eat(":") {
                    self.eat("interval");
                    set.data = Some(self.data_type()?);
                }
            }
            "flags" => loop {
                let flag = self.one_of(&SET_FLAGS, "constant, dynamic, interval or timeout")?;
                set.flags |= 1 << SET_FLAGS.iter().position(|name| *name == flag).unwrap_or(0);
                if !self.eat(",") {
                    break;
                }
            },
            "timeout" => set.timeout = Some(self.span()?),
            "gc-interval" => set.gc_interval = Some(self.span()?),
            "size" => set.size = Some(self.integer()?),
            "policy" => {
                set.memory =
                    self.one_of(&["memory", "performance"], "memory or performance")? == "memory"
            }
            "auto-merge" => set.auto_merge = true,
            "comment" => set.comment = Some(self.word("a comment")?.into()),
            "elements" => {
                self.expect("=")?;
                let data = set.data.as_ref().map(KeyType::types);
                let elements = self.elements(&set.key.types(), data.as_deref())?;
                set.elements.extend(elements);
            }
            _ => return Err(self.refused(&format!("expected a line of a set instead of {word}"))),
        }
        Ok(())
    }

    fn types(&mut self) -> Result<Vec<Ty>> {
        let mut types = Vec::new();
        loop {
            let mut name = self.word("a type")?;
            if name == "ct" {
                name = format!("ct {}", self.word("helper, timeout or expectation")?);
            }
            match types::find(&name) {
                Some(ty) => types.push(ty),
                None => return Err(self.refused(&format!("expected a type instead of {name}"))),
            }
            if !self.eat(".") {
                return Ok(types);
            }
        }
    }

    fn data_type(&mut self) -> Result<KeyType> {
        if self.is("ct") {
            self.next();
            for kind in ["helper", "timeout", "expectation"] {
                if self.eat(kind) {
                    let ty = types::find(&format!("ct {kind}")).unwrap_or(&INTEGER);
                    return Ok(KeyType::Types(vec![ty]));
                }
            }
            let ct = Field::Ct(Ct::parse(self)?);
            return Ok(KeyType::Of(self.left_from(Some(ct))?));
        }
        match KINDS.iter().find(|kind| self.is(kind.name)).map(|kind| kind.ty) {
            Some(ty) => {
                self.next();
                Ok(KeyType::Types(vec![ty]))
            }
            None if self.eat("queue") => Ok(KeyType::Types(vec![&types::QUEUE])),
            None if self.eat("verdict") => Ok(KeyType::Types(vec![&types::VERDICT])),
            None => self.left().map(KeyType::Of),
        }
    }
}
