//! Text as `nft list ruleset` prints it and as files for `nft -f` hold it: [`parse`] and [`print`](print::ruleset).

mod commands;
mod expr;
mod files;
mod lexer;
mod objects;
mod parser;
mod printer;
mod sets;
mod table;
mod whole;

pub mod print;

pub use lexer::Error;
pub use parser::{Includes, Parser};
pub use printer::Printer;
pub use whole::{parse, parse_rule};

/// A result of reading text.
pub type Result<T> = std::result::Result<T, Error>;

/// Moves items to a list that has no more room than that: most lists are of one or two, and growing ones have room for four.
fn exact<T>(items: Vec<T>) -> Vec<T> {
    if items.len() == items.capacity() {
        return items;
    }
    let mut exact = Vec::with_capacity(items.len());
    exact.extend(items);
    exact
}
