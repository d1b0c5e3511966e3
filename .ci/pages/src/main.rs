//! `cargo run -p tamis-pages [FOLDER]`: the links of README, the book and every other page lead somewhere, the book has
//! every page of `docs/`, and README stays short. Prints what does not hold, a line each, and exits with 1 if there is any.

mod check;
mod page;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

fn main() -> Result<ExitCode> {
    let root = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("."), PathBuf::from);
    let pages = check::Pages::read(&root)?;
    let wrong = pages.wrong();
    wrong.iter().for_each(|line| println!("{line}"));
    println!("pages: {} read, {} wrong", pages.len(), wrong.len());
    Ok(if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
