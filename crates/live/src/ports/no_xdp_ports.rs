//! Stands in where there is no AF_XDP: each port of it fails.

use std::io;

use pktio::{Opener, PortError};

use crate::config::{PortSettings, Settings};
use pktio::BoxedPort;

/// Fails to open ports of AF_XDP.
#[derive(Default)]
pub(crate) struct OpenXdp;

impl OpenXdp {
    pub(crate) fn sharing(_settings: &Settings) -> Result<Self, PortError> {
        Ok(Self)
    }

    pub(crate) fn open(
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
