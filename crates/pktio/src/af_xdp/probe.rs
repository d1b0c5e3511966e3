//! [`AfXdpPort::probe`]: whether this process may open ports, and what keeps it from that.
//!
//! Contract: what a port takes is made and let go of; no interface is touched.

use std::fmt;
use std::io;

use super::bpf::{Program, SocketMap};
use super::{AfXdpConfig, AfXdpPort, Umem, sys};
use crate::port::PortError;

/// What a port takes that this process does not get, with the kernel's word.
#[derive(Debug)]
pub enum XdpLacking {
    /// Sockets of AF_XDP.
    Socket(io::Error),
    /// Memory that the kernel keeps in place: this many bytes.
    Memory(usize, io::Error),
    /// Programs on interfaces.
    Program(io::Error),
}

impl fmt::Display for XdpLacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(error) => write!(f, "no AF_XDP socket: {error}"),
            Self::Memory(bytes, error) => write!(f, "no {bytes} bytes that stay in place: {error}"),
            Self::Program(error) => write!(f, "no XDP program: {error}"),
        }
    }
}

impl AfXdpPort {
    /// Whether a port of one queue could be opened, as far as that does not depend on its interface.
    ///
    /// # Errors
    /// What is lacking first.
    pub fn probe() -> Result<(), XdpLacking> {
        const CHUNK_BYTES: usize = 2048;
        let socket = sys::socket().map_err(XdpLacking::Socket)?;
        let chunks = AfXdpConfig::new("").chunks();
        let memory = |error| XdpLacking::Memory(chunks * CHUNK_BYTES, error);
        let umem = Umem::new(chunks, CHUNK_BYTES).map_err(|error| match error {
            PortError::Io { source, .. } => memory(source),
            other => memory(io::Error::other(other.to_string())),
        })?;
        umem.register(&socket).map_err(memory)?;
        let loaded = SocketMap::new(1).and_then(|map| Program::load(&map));
        loaded.map(drop).map_err(XdpLacking::Program)
    }
}
