//! Where there is no AF_XDP: each port of it fails.

use std::io;

use pktio::{Opener, PortError};

use super::config::{PortSettings, Settings};
use super::wire::BoxedPort;

/// Opens no ports of AF_XDP.
#[derive(Default)]
pub(super) struct OpenXdp;

impl OpenXdp {
    pub(super) fn sharing(_settings: &Settings) -> Result<Self, PortError> {
        Ok(Self)
    }

    pub(super) fn open(
        &self,
        _opener: &dyn Opener,
        port: &PortSettings,
        _workers: usize,
        _settings: &Settings,
    ) -> Result<(String, Vec<BoxedPort>, Option<String>), PortError> {
        let source = io::ErrorKind::Unsupported.into();
        Err(PortError::Io { name: port.name.clone(), offset: 0, source })
    }
}
