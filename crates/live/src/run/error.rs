//! [`RunError`]: why a run failed to start, or stopped early.

use std::fmt;
use std::net::SocketAddr;

use pktio::PortError;

use crate::config::ConfigError;
use crate::forward::worker::Failed;
use crate::rules::journal::JournalError;

/// Why a run failed to start, or stopped early.
#[derive(Debug)]
pub enum RunError {
    /// The configuration, or a file that it names, is refused.
    Config(ConfigError),
    /// A port failed.
    Port(PortError),
    /// The control socket cannot be opened.
    Control {
        /// The path of the socket.
        socket: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The address for metrics cannot be listened on.
    Metrics {
        /// The address.
        listen: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file of connections cannot be written, or removed at the start.
    Connections {
        /// The file.
        file: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The journal cannot be opened, or written.
    Journal(JournalError),
    /// A worker panicked a second time: its number.
    Panicked(usize),
    /// A worker that a program polls was dropped before the run's end: its number.
    Abandoned(usize),
    /// Workers could not be started.
    Workers(std::io::Error),
}

impl From<PortError> for RunError {
    fn from(error: PortError) -> Self {
        Self::Port(error)
    }
}

impl From<Failed> for RunError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Port(error) => Self::Port(error),
            Failed::Panicked(worker) => Self::Panicked(worker),
            Failed::Abandoned(worker) => Self::Abandoned(worker),
        }
    }
}

impl RunError {
    /// Whether the input is wrong, and not the machine.
    #[must_use]
    pub fn is_input(&self) -> bool {
        matches!(self, Self::Config(_))
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Port(error) => error.fmt(f),
            Self::Control { socket: file, source } | Self::Connections { file, source } => {
                write!(f, "{file}: {source}")
            }
            Self::Journal(error) => error.fmt(f),
            Self::Metrics { listen, source } => write!(f, "[metrics] listen {listen}: {source}"),
            Self::Panicked(worker) => write!(f, "worker {worker} panicked again, and ended"),
            Self::Abandoned(worker) => {
                write!(f, "worker {worker} was given up: nobody takes its packets any more")
            }
            Self::Workers(error) => write!(f, "workers: {error}"),
        }
    }
}

impl std::error::Error for RunError {}
