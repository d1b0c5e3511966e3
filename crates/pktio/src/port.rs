//! The trait that every source and sink of frames implements: rooms 1 and 6 of the packet's path.
//!
//! Contract: one thread drives a port; `rx_burst` and `tx_burst` may block where the port does. A port never looks
//! inside a frame. `memory.rs` says who owns a frame's memory.

use std::{fmt, io};

use crate::burst::Burst;
use crate::envelope::Envelope;
use crate::readiness::Readiness;

/// A port of any kind, which a worker may drive.
pub type BoxedPort = Box<dyn Port + Send>;

/// Receives and transmits bursts of frames.
pub trait Port {
    /// Replaces the frames of `burst` with the next ones received, and returns their number.
    ///
    /// 0 means that nothing more will come from a capture, and that nothing is there now on a live port.
    ///
    /// # Errors
    /// When the medium fails. What a capture file holds is never an error here: it ends early and says so
    /// ([`CaptureReader::end`](crate::CaptureReader::end)).
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError>;

    /// Transmits the frames of `burst` in order, and returns how many were taken.
    ///
    /// Taken frames leave the burst, with their memory where the port can use it; otherwise the port copies them. The
    /// rest stay in the burst: they were not sent, and are the caller's to send again or to drop.
    ///
    /// # Errors
    /// When the medium fails.
    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError>;

    /// Hands on what was transmitted and is still held here: once, when nothing more will be.
    ///
    /// # Errors
    /// When the medium fails: frames that were taken before are lost.
    fn flush(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    /// How to wait for frames on this port.
    fn readiness(&self) -> Readiness<'_>;

    /// Counters since the port was opened.
    fn stats(&self) -> Stats;

    /// Whether checksums may be left to it, and superframes whole.
    fn finishes(&self) -> bool {
        false
    }

    /// Returns an envelope that opens the frames that the port hands over and seals the frames that it takes, a new one
    /// for each caller; `None` where frames are plain.
    fn envelope(&self) -> Option<Box<dyn Envelope>> {
        None
    }
}

/// A port whose kind is known where it is opened alone.
impl<P: Port + ?Sized> Port for Box<P> {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        (**self).rx_burst(burst)
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        (**self).tx_burst(burst)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        (**self).flush()
    }

    fn readiness(&self) -> Readiness<'_> {
        (**self).readiness()
    }

    fn stats(&self) -> Stats {
        (**self).stats()
    }

    fn finishes(&self) -> bool {
        (**self).finishes()
    }

    fn envelope(&self) -> Option<Box<dyn Envelope>> {
        (**self).envelope()
    }
}

/// Counters of a port. Bytes are captured bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Frames received.
    pub rx_frames: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Frames that the port lost before anyone could receive them.
    pub rx_lost: u64,
    /// Frames transmitted.
    pub tx_frames: u64,
    /// Bytes transmitted.
    pub tx_bytes: u64,
    /// Frames offered for transmission and not taken.
    pub tx_full: u64,
    /// The transmitted frames that had to be copied.
    pub tx_copied: u64,
    /// Frames taken and not transmitted: longer than the port can carry.
    pub tx_too_long: u64,
    /// Frames taken and not transmitted: the medium refused them, or is down.
    pub tx_refused: u64,
}

/// Why a port cannot do what was asked.
#[derive(Debug)]
pub enum PortError {
    /// The operating system refused to open, read or write.
    Io {
        /// File or interface.
        name: String,
        /// Bytes read or written before, counted as they are stored.
        offset: u64,
        /// The system's error.
        source: io::Error,
    },
    /// The file is no capture, or one of a kind that is not read.
    NotACapture {
        /// The file.
        name: String,
        /// Byte at which that shows, in the decompressed file.
        offset: u64,
        /// What should stand there.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// The interface was deleted, or the port was taken off it.
    Gone {
        /// The interface.
        name: String,
    },
    /// The port cannot transmit.
    ReceiveOnly {
        /// The port.
        name: String,
    },
}

impl PortError {
    /// Whether the interface is down: the port works again once it is up.
    #[must_use]
    pub fn is_down(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NetworkDown)
    }

    /// Whether the interface was deleted: it has to be opened again.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Gone { .. })
    }
}

impl fmt::Display for PortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { name, offset: 0, source } => write!(f, "{name}: {source}"),
            Self::Io { name, offset, source } => write!(f, "{name}: byte {offset}: {source}"),
            Self::NotACapture { name, offset, expected, found } => {
                write!(f, "{name}: byte {offset}: expected {expected}, found {found}")
            }
            Self::Gone { name } => write!(f, "{name}: the interface is gone"),
            Self::ReceiveOnly { name } => write!(f, "{name}: cannot transmit into this port"),
        }
    }
}

impl std::error::Error for PortError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::NotACapture { .. } | Self::Gone { .. } | Self::ReceiveOnly { .. } => None,
        }
    }
}
