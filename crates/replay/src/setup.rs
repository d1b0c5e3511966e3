//! [`Setup`]: what a replay, `why` and cases need besides rules.

use dataplane::{Config, Start};

/// What options come to: how packets walk, and the state that the first of them meets.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// How they walk, and the host.
    pub config: Config,
    /// What there is when the first one comes.
    pub start: Start,
}

impl From<Config> for Setup {
    fn from(config: Config) -> Self {
        Self { config, start: Start::default() }
    }
}
