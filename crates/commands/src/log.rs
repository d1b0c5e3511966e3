//! [`Log`]: what a run writes to standard error while it runs, as lines for people or as JSON for programs.
//!
//! Contract: text is as it always was. JSON has an object on each line, with `timestamp` (RFC 3339, UTC), `level`, `message`
//! and, where it is about one, `span` with its `port`, `worker` or `program`; a panic is one, too. Packets are not
//! logged. What cannot be written is lost.

use std::io;
use std::panic;
use std::thread;

use live::config::LogFormat;
use packet::visible;
use tracing::{error, info, warn};

use crate::screen;

/// Where a run tells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Log {
    format: LogFormat,
}

impl Log {
    /// Starts logging in this form. To be called once.
    pub(crate) fn start(format: LogFormat) -> Self {
        if format == LogFormat::Json {
            let json = tracing_subscriber::fmt().json().flatten_event(true);
            let plain = json.with_span_list(false).with_target(false).with_writer(io::stderr);
            plain.log_internal_errors(false).init();
            panic::set_hook(Box::new(|panic| {
                let thread = thread::current();
                error!(thread = thread.name(), "{}", visible::word(&panic.to_string()));
            }));
        }
        Self { format }
    }

    /// Tells a line, which says itself how grave it is: `warning: …`, or `tamis: …` for an error.
    pub(crate) fn tell(self, line: &str) {
        match self.format {
            LogFormat::Text => screen::tell(line),
            LogFormat::Json => event(&visible::word(line)),
        }
    }

    /// Tells what is odd.
    pub(crate) fn warn(self, warnings: &[String]) {
        warnings.iter().for_each(|warning| self.tell(&format!("warning: {warning}")));
    }
}

fn event(line: &str) {
    match (line.strip_prefix("warning: "), line.strip_prefix("tamis: ")) {
        (Some(what), _) => warn!("{what}"),
        (None, Some(what)) => error!("{what}"),
        (None, None) => info!("{line}"),
    }
}
