//! [`Running`]: a run for those who ask it and change it while somebody else waits for its end.

use std::sync::Arc;

use serde_json::Value;

use super::control;
use super::live::Live;
use super::status::Status;

/// A run, beside who waits for its end.
#[derive(Debug, Clone)]
pub struct Running(pub(super) Arc<Live>);

impl Running {
    /// Tells the workers to stop once they have handled what their ports still have.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// What has become of all frames so far, and how the workers are.
    #[must_use]
    pub fn status(&self) -> Status {
        self.0.status()
    }

    /// What a client of the control socket is answered to this line.
    #[must_use]
    pub fn answer(&self, line: &str) -> Value {
        control::answer_to_line(line, &self.0)
    }
}
