//! Opening ports in a namespace, and taking frames out of them.

use std::thread;
use std::time::{Duration, Instant};

use pktio::{
    AfXdpConfig, AfXdpPort, Burst, FrameBuf, LiveMeta, Port, PortError, Readiness, Taken, Umem,
    XdpMode,
};

use crate::af_packet::wire::PATIENCE;
use crate::tun::namespace::Namespace;
use crate::tun::sys::wait;

/// Every way that a virtual interface can be attached by.
pub(super) const MODES: [XdpMode; 2] = [XdpMode::Native, XdpMode::Generic];

/// Rings of as few entries as the tests need.
pub(super) fn small(name: &str, mode: XdpMode) -> AfXdpConfig {
    AfXdpConfig { ring_frames: 64, burst_frames: 16, mode, ..AfXdpConfig::new(name) }
}

/// Memory for so many such ports.
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

/// Waits until the port may have something, a little; whether it may.
pub(super) fn rest(port: &AfXdpPort) -> bool {
    let Readiness::Descriptor(fd) = port.readiness() else { panic!("it has one") };
    wait(&[fd], 50).unwrap()
}

/// Receives until there are `wanted` frames; copies, with what the port knows of them.
pub(super) fn receive(port: &mut AfXdpPort, wanted: usize) -> Vec<(Vec<u8>, LiveMeta)> {
    let began = Instant::now();
    let mut burst = Burst::with_capacity(0);
    let mut found = Vec::new();
    while found.len() < wanted && began.elapsed() < PATIENCE {
        if port.rx_burst(&mut burst).unwrap() == 0 {
            rest(port);
        }
        let lives = (0..burst.len()).map(|at| *burst.live(at).unwrap());
        found.extend(burst.iter().map(|frame| frame.bytes.to_vec()).zip(lives));
    }
    assert_eq!(found.len(), wanted, "{:?}", port.losses());
    found
}

/// What the port has after a while of nothing.
pub(super) fn drain(port: &mut AfXdpPort) -> Vec<Vec<u8>> {
    thread::sleep(Duration::from_millis(50));
    let mut burst = Burst::with_capacity(0);
    let mut found = Vec::new();
    while port.rx_burst(&mut burst).unwrap() > 0 {
        found.extend(burst.iter().map(|frame| frame.bytes.to_vec()));
    }
    found
}

/// The frames of a burst, each with its memory.
pub(super) fn moved(burst: &mut Burst) -> impl Iterator<Item = FrameBuf> {
    burst.drain(usize::MAX).map(|taken| match taken {
        Taken::Moved(frame) => frame,
        Taken::Lent { .. } => panic!("it has memory"),
    })
}
