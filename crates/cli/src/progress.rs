//! A progress bar on standard error, for work over a second, on a terminal only.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// How long work goes on before a bar shows.
const PATIENCE: Duration = Duration::from_secs(1);

/// Progress through a capture in bytes.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
    wanted: bool,
}

impl Progress {
    /// No bar yet.
    pub(crate) fn new() -> Self {
        let wanted = std::io::stderr().is_terminal();
        Self { bar: None, started: Instant::now(), wanted }
    }

    /// `done` bytes of `all` are read.
    pub(crate) fn at(&mut self, done: u64, all: Option<u64>) {
        if !self.wanted || (self.bar.is_none() && self.started.elapsed() < PATIENCE) {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style = "{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta} left";
            let style = ProgressStyle::with_template(style);
            ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        bar.set_length(all.unwrap_or(done));
        bar.set_position(done);
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
