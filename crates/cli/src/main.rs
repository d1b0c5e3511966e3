//! `tamis`: what happens to this packet under these rules, and why?
//!
//! All of it is in the crate `commands`, which is built small; this one is at the level of linking, and so hands on the
//! commit that it is built of and the allocator, nothing else.
#![forbid(unsafe_code)]

use std::process::ExitCode;

/// Rulesets are many small allocations, and large ones fault thousands of pages in: this one asks for huge pages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    commands::main(concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("TAMIS_COMMIT"), ")"))
}
