//! `tamis bench` and `tamis lab`: where they went.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, bail};

/// Whatever the command once took.
#[derive(Debug, clap::Args)]
pub(crate) struct MovedArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _rest: Vec<OsString>,
}

/// Says where the command went.
pub(crate) fn refuse(command: &str) -> Result<ExitCode> {
    bail!(
        "{command} is a program of its own now: tamis-bench (cargo build --release --bin tamis-bench)"
    )
}
