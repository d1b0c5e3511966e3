//! `cargo run -p tamis-modules [CRATE-FOLDER…]`: which modules of a crate depend on each other in a circle.
//!
//! A module is a file. It depends on the file that *defines* what one of its paths names: `pub use` is followed
//! to the end, so a name that a crate's root hands on is no dependence on the root. A parent is a module like any
//! other: it may use its children or be used by them. Each circle is an error, unless `exceptions.txt` lists one of
//! its edges with a reason.
//! Where `floors.txt` puts the top modules of a crate in order, none may use a module of a later floor, either.
//! Modules for tests are left out. What it cannot see: methods called on a value, and paths that macros build.
//!
//! Prints each circle with its edges and where they are; exits with 1 if there is one, or an exception too many.

mod circles;
mod exceptions;
mod floors;
mod resolve;
mod source;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};

fn main() -> Result<ExitCode> {
    let given: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let all = given.is_empty();
    let mut exceptions = exceptions::read(include_str!("../exceptions.txt"))?;
    let floors = floors::read(include_str!("../floors.txt"))?;
    let mut found = 0;
    for folder in if all { source::crates("crates".as_ref())? } else { given } {
        let modules = source::read(&folder)
            .with_context(|| format!("{}: no crate's folder", folder.display()))?;
        let edges = resolve::edges(&modules);
        for edge in edges.iter().filter(|edge| floors.iter().any(|all| all.refuses(&modules, edge)))
        {
            found += 1;
            let (from, to) = (&modules[edge.from].path, &modules[edge.to].path);
            println!("{}: up: {from} -> {to}  {}", folder.display(), edge.at(&modules));
        }
        let (listed, counted): (Vec<_>, Vec<_>) =
            edges.into_iter().partition(|edge| exceptions.lists(&modules, edge));
        exceptions.check(&modules, &listed, &counted);
        for circle in circles::find(modules.len(), &counted) {
            found += 1;
            println!("{}: a circle of {} modules", folder.display(), circle.len());
            for edge in counted.iter().filter(|edge| circles::within(&circle, edge)) {
                println!(
                    "  {} -> {}  {}",
                    modules[edge.from].path,
                    modules[edge.to].path,
                    edge.at(&modules)
                );
            }
        }
    }
    let idle = if all { exceptions.idle() } else { Vec::new() };
    idle.iter().for_each(|line| println!("exceptions.txt:{line}: nothing needs this exception"));
    Ok(if found == 0 && idle.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
