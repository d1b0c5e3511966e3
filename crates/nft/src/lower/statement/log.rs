//! `log`: what is written depends on the rule, and nothing on what is written.

use super::{Act, Next};
use crate::stmt;
use rules::Transit;

/// A line in a log.
#[derive(Debug)]
pub(crate) struct Log {
    prefix: Box<str>,
}

impl Log {
    /// Makes it of the statement.
    pub(crate) fn new(log: &stmt::Log) -> Self {
        Self { prefix: log.prefix.clone().unwrap_or_default() }
    }
}

impl Act for Log {
    fn act(&self, _transit: &mut Transit<'_, '_>) -> Next {
        Next::On
    }

    fn may_end(&self) -> bool {
        false
    }

    fn watches(&self) -> bool {
        true
    }

    fn log_prefix(&self) -> Option<&str> {
        Some(&self.prefix)
    }
}
