//! Opening ports in a namespace, and taking frames out of them.

use std::time::Duration;

use pktio::{AfXdpConfig, AfXdpPort, Burst, FrameBuf, PortError, Taken, Umem, XdpMode};

use crate::af_packet::wire::after;
use crate::tun::namespace::Namespace;

/// Every way that a virtual interface can be attached by.
pub(super) const MODES: [XdpMode; 2] = [XdpMode::Native, XdpMode::Generic];

/// Rings of as few entries as the tests need.
pub(super) fn small(name: &str, mode: XdpMode) -> AfXdpConfig {
    AfXdpConfig { ring_frames: 64, burst_frames: 16, mode, ..AfXdpConfig::new(name) }
}

/// Returns memory for this many such ports.
pub(super) fn umem_for(config: &AfXdpConfig, ports: usize) -> Umem {
    Umem::new(ports * config.chunks(), 2048).unwrap()
}

pub(super) fn open(
    namespace: &Namespace,
    config: &AfXdpConfig,
    umem: &Umem,
) -> Result<AfXdpPort, PortError> {
    let (config, umem) = (config.clone(), umem.clone());
    namespace.run(move || AfXdpPort::open(&config, &umem))
}

/// What the port has after a while of nothing.
pub(super) fn drain(port: &mut AfXdpPort) -> Vec<Vec<u8>> {
    after(port, Duration::from_millis(50))
}

/// The frames of a burst, each with its memory.
pub(super) fn moved(burst: &mut Burst) -> impl Iterator<Item = FrameBuf> {
    burst.drain(usize::MAX).map(|taken| match taken {
        Taken::Moved(frame) => frame.into_buf(),
        Taken::Lent { .. } => panic!("it has memory"),
    })
}
