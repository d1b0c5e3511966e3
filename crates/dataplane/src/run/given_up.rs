//! [`GivenUp`]: what a process can no longer do once its ports are open. Who starts the run gives it up, and says so
//! here; the run only tells it.

use serde_json::{Value, json};

/// What was given up before the first worker started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GivenUp {
    /// All capabilities.
    pub capabilities: bool,
    /// Gaining any by a program that it starts (`no_new_privs`).
    pub new_privileges: bool,
    /// All system calls that a run does not need (seccomp).
    pub system_calls: bool,
    /// All files but its own (Landlock).
    pub files: bool,
}

impl GivenUp {
    /// As the part of a status.
    pub(super) fn json(self) -> Value {
        json!({
            "capabilities": self.capabilities,
            "new_privileges": self.new_privileges,
            "system_calls": self.system_calls,
            "files": self.files,
        })
    }
}
