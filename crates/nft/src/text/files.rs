//! Variables and included files.

use super::{Parser, Result};

/// Most files that a ruleset may include.
const FILES: usize = 1000;

impl Parser<'_> {
    /// Reads `define`, `redefine`, `undefine` and `include`, if the current word is one of them.
    pub(super) fn directive(&mut self) -> Result<bool> {
        if self.is_quoted() {
            return Ok(false);
        }
        match self.peek() {
            "define" | "redefine" => self.define()?,
            "undefine" => {
                self.next();
                let name = self.word("the name of a variable")?;
                if self.lex.variables.remove(&name).is_none() {
                    return Err(self.refused(&format!("no variable {name} is defined")));
                }
            }
            "include" => self.include()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn define(&mut self) -> Result<()> {
        let again = self.is("redefine");
        self.next();
        let name = self.word("the name of a variable")?;
        if !self.is("=") {
            return Err(self.wanted("="));
        }
        if !again && self.lex.variables.contains_key(&name) {
            return Err(
                self.refused(&format!("variable {name} is defined already: expected redefine"))
            );
        }
        let Some(part) = self.lex.value() else { return Err(self.wanted("a value")) };
        self.lex.variables.insert(name, part);
        self.next();
        Ok(())
    }

    fn include(&mut self) -> Result<()> {
        self.next();
        if !self.is_quoted() {
            return Err(self.wanted("a file in quotes"));
        }
        let pattern = self.peek().to_owned();
        let files = (self.includes)(&pattern).map_err(|why| self.refused(&why))?;
        if self.lex.sources.len() + files.len() > FILES {
            return Err(self.refused(&format!("more than {FILES} files are included")));
        }
        // The last one is entered first, so that the first is read first.
        for (name, text) in files.iter().rev() {
            if !self.lex.enter(name, text) {
                return Err(
                    self.refused("files are included too deeply, or too many by one pattern")
                );
            }
        }
        self.next();
        Ok(())
    }
}
