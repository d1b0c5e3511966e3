//! How a measurement is told, and when it ends: the options of every command that measures.

use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use lab::bench::{Rows, limit};

/// How it is told.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Output {
    /// One JSON document a line, as it is measured, schema tamis.bench/2
    #[arg(long)]
    json: bool,
    /// Begin nothing more after so long: rows are of the rounds until then, and what is left out is said
    #[arg(long = "for", value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    seconds: Option<u32>,
}

impl Output {
    /// The sink for what is measured from now on, until the time is over or SIGTERM comes.
    pub(crate) fn begin(self) -> Result<Rows> {
        limit::end_at_sigterm().context("SIGTERM")?;
        if let Some(seconds) = self.seconds {
            limit::end_after(Duration::from_secs(seconds.into()));
        }
        Ok(Rows::printed(self.json))
    }
}
