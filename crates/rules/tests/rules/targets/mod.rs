//! Targets through the public door: what they print, what they refuse, and what they do to a packet.

mod packets;
mod text;

use rules::model::{Family, Ruleset};
use rules::save::{LoadOptions, load};

/// The rules of one table.
fn ruleset(family: Family, table: &str, rules: &str) -> Result<Ruleset, String> {
    let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
    let text = format!("*{table}\n{rules}\nCOMMIT\n");
    load(&text, &options).map(|loaded| loaded.ruleset).map_err(|error| error.to_string())
}
