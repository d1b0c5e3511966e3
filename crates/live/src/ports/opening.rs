//! Opening ports: from the configuration of a port to the queues that workers drive.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use conntrack::steer::Instruction;
use pktio::{FaultPort, MemoryPort, Opener, Pool, PortError};

use crate::config::{Gone, Kind, Order, PortSettings, Settings, Ttl, WireSettings, topology};
use crate::ports::capture_port::CapturePort;
use crate::ports::device::{Device, Open, Opened};
use crate::ports::interface;
use crate::ports::queues::Queues;
use crate::ports::tunnel::{self, Site, TunnelPort};
use crate::ports::xdp_ports::OpenXdp;
use dataplane::Crossing;
use pktio::BoxedPort;

/// Frames that a loopback holds, and hands over at a time.
const LOOPED: usize = 1024;
const LOOPED_BURST: usize = 64;
/// Bytes of a frame of the largest MTU of Ethernet, with tags.
const LOOPED_BYTES: usize = 2048;

/// Opens devices of DPDK, which this crate does not link: a program that has DPDK passes this in.
pub trait OpenDpdk {
    /// Opens a device: a port for each of `queues` queues, or fewer, if the device has fewer.
    ///
    /// # Errors
    /// The EAL does not start, or there is no such device.
    fn open(
        &mut self,
        settings: &Settings,
        device: &str,
        queues: u16,
    ) -> Result<Vec<BoxedPort>, PortError>;
}

/// Opens none: for programs without DPDK.
impl OpenDpdk for () {
    fn open(
        &mut self,
        _settings: &Settings,
        device: &str,
        _queues: u16,
    ) -> Result<Vec<BoxedPort>, PortError> {
        let source = io::ErrorKind::Unsupported.into();
        Err(PortError::Io { name: device.to_owned(), offset: 0, source })
    }
}

/// The openers of devices, some of which share something: an EAL, or memory.
pub(crate) struct Openers<'o> {
    /// Does what takes privileges, except for DPDK.
    pub(crate) opener: Arc<dyn Opener>,
    /// The program by which interfaces distribute frames; empty where any worker may have any frame.
    pub(crate) program: Vec<Instruction>,
    pub(crate) dpdk: &'o mut dyn OpenDpdk,
    pub(crate) xdp: OpenXdp,
    /// The tunnels that were opened.
    pub(crate) tunnels: Vec<Arc<Site>>,
}

/// A port that is open.
pub(crate) struct OpenPort {
    pub(crate) queues: Queues,
    /// The watched device, if the port is a device that may disappear and come back.
    pub(crate) device: Option<Arc<Device>>,
    /// A warning about the port.
    pub(crate) odd: Option<String>,
}

/// Opens the port at a place of the configuration, with a queue for each of `workers` workers if it has as many, and
/// its wire does not keep the order of all frames.
///
/// # Errors
/// The port fails.
pub(crate) fn open(
    settings: &Settings,
    place: usize,
    workers: usize,
    order: Order,
    openers: &mut Openers<'_>,
) -> Result<OpenPort, PortError> {
    let PortSettings { name, kind, gone, .. } = &settings.ports[place];
    let is_device = matches!(kind, Kind::AfPacket { .. } | Kind::AfXdp { .. } | Kind::Tun { .. });
    let queues = if order == Order::Wire { 1 } else { workers };
    let mut found = open_queues(settings, place, queues, openers)?;
    let odd = found.odd.take();
    let receiving = found.queues.len();
    let opened = found.opened(workers, order)?;
    if !is_device || *gone == Gone::End {
        let queues = Queues { parts: opened.queues, receiving };
        return Ok(OpenPort { queues, device: None, odd });
    }
    let settings = settings.clone();
    let (opener, program) = (Arc::clone(&openers.opener), openers.program.clone());
    let again: Open = Box::new(move || {
        let (opener, program) = (Arc::clone(&opener), program.clone());
        let mut openers = Openers {
            opener,
            program,
            dpdk: &mut (),
            xdp: OpenXdp::default(),
            tunnels: Vec::new(),
        };
        // No more queues than at first: workers rely on which of them receive.
        open_queues(&settings, place, receiving, &mut openers)?.opened(workers, order)
    });
    let (device, queues) = Device::new(name, opened, again);
    let parts = queues.into_iter().map(|queue| Box::new(queue) as BoxedPort).collect();
    Ok(OpenPort { queues: Queues { parts, receiving }, device: Some(device), odd })
}

/// Queues of an open port, with the name of its device.
struct Found {
    name: String,
    queues: Vec<BoxedPort>,
    idle_latency: Duration,
    /// A warning about the port.
    odd: Option<String>,
}

impl Found {
    /// A port that needs no more than its queues.
    fn new(name: &str, queues: Vec<BoxedPort>) -> Self {
        Self { name: name.to_owned(), queues, idle_latency: Duration::ZERO, odd: None }
    }

    /// Gives each of `workers` workers a queue, or a part of one.
    fn opened(self, workers: usize, order: Order) -> Result<Opened, PortError> {
        let Self { name, queues, idle_latency, .. } = self;
        let failed = |source| PortError::Io { name: name.clone(), offset: 0, source };
        let queues = Queues::of(queues, workers, order).map_err(failed)?.parts;
        Ok(Opened { name, queues, idle_latency })
    }
}

/// Opens the queues of the port at a place, the first time and each time that its device has come back: the only way to
/// what needs privileges.
fn open_queues(
    settings: &Settings,
    place: usize,
    workers: usize,
    openers: &mut Openers<'_>,
) -> Result<Found, PortError> {
    let PortSettings { name, kind, .. } = &settings.ports[place];
    let port: BoxedPort = match kind {
        Kind::Pcap { file, pace, out } => {
            let [file, out] = [file, out].map(|named| named.as_ref().map(|named| &*named.path));
            Box::new(CapturePort::open(name, file, *pace, out)?)
        }
        Kind::AfPacket { device, queues } => {
            let name = devices::found(device)?;
            let queues = workers.min(usize::from(*queues));
            let (queues, idle_latency) = devices::af_packet(openers, &name, queues, settings)?;
            return Ok(Found { idle_latency, ..Found::new(&name, queues) });
        }
        Kind::AfXdp { .. } => {
            let port = &settings.ports[place];
            let (name, queues, odd) =
                openers.xdp.open(&*openers.opener, port, workers, settings)?;
            return Ok(Found { odd, ..Found::new(&name, queues) });
        }
        Kind::Tun { device } => {
            let port = &settings.ports[place];
            let queues = devices::tun(&*openers.opener, (device, port.gone), workers, settings)?;
            return Ok(Found::new(device, queues));
        }
        Kind::Dpdk { device } => {
            let queues = openers.dpdk.open(settings, device, workers as u16)?;
            return Ok(Found::new(device, queues));
        }
        Kind::Tunnel { file } => {
            let site = tunnel::open(name, &file.path)?;
            openers.tunnels.push(Arc::clone(&site));
            Box::new(TunnelPort::new(site))
        }
        Kind::Loopback => {
            let kept = settings.ring() * workers;
            let pool = Pool::new(2 * LOOPED + kept, LOOPED_BYTES, 0);
            Box::new(MemoryPort::looped(&pool, LOOPED, LOOPED_BURST))
        }
        // The ports that it wraps come before it, and are opened with one queue.
        Kind::Fault { of, seed, rates } => {
            let queue = open_queues(settings, *of, 1, openers)?.queues.pop();
            Box::new(FaultPort::new(queue.ok_or_else(|| gone(name))?, *seed, *rates))
        }
    };
    Ok(Found::new(name, vec![port]))
}

/// How frames cross a wire in each direction, once its ports are open.
pub(crate) fn crossings(
    settings: &Settings,
    wire: &WireSettings,
    tunnels: &[Arc<Site>],
) -> [Crossing; 2] {
    let ages = wire.ttl == Ttl::Lower;
    let [first, second] = wire.ports.map(|place| mtu(settings, place, tunnels));
    [[second, first], [first, second]].map(|[mtu, mtu_back]| Crossing { ages, mtu, mtu_back })
}

/// Bytes of the longest packet of the port at a place: as its device says, or as configured.
fn mtu(settings: &Settings, place: usize, tunnels: &[Arc<Site>]) -> Option<u32> {
    let port = settings.ports.get(place)?;
    match &port.kind {
        Kind::AfPacket { device, .. } | Kind::AfXdp { device, .. } | Kind::Tun { device } => {
            interface::mtu(device)
        }
        Kind::Fault { of, .. } => mtu(settings, *of, tunnels),
        Kind::Tunnel { .. } => {
            tunnels.iter().find(|site| *site.name() == *port.name).map(|site| site.mtu())
        }
        Kind::Dpdk { .. } | Kind::Pcap { .. } | Kind::Loopback => port.mtu,
    }
}

/// Warnings about devices whose memory is far from workers that use it.
pub(crate) fn apart(settings: &Settings, cores: &[Option<usize>]) -> Vec<String> {
    let devices = settings.ports.iter().filter_map(PortSettings::interface);
    devices.filter_map(|device| topology::apart(device, cores)).collect()
}

fn gone(name: &str) -> PortError {
    PortError::Gone { name: name.to_owned() }
}

/// Ports that are devices of the kernel's.
#[cfg(target_os = "linux")]
mod devices {
    use std::time::Duration;

    use conntrack::steer::Instruction;
    use pktio::{
        AfPacketConfig, AfPacketPort, FilterInstruction, Opener, Pool, PortError, TunConfig,
        TunPort,
    };

    use super::{BoxedPort, Openers, Settings};
    use crate::config::{BurstSettings, Gone};
    pub(crate) use crate::ports::device::found;
    use crate::ports::lanes;

    /// Frames that are copied out of a ring that is nearly full, and bytes of each; frames that middleboxes keep come
    /// on top.
    const COPIES: usize = 512;
    /// Chunks of a TUN device's frames, which may be superframes, and the room before each.
    const CHUNKS: usize = 256;
    const CHUNK_BYTES: usize = 66 * 1024;
    const HEADROOM: usize = 64;

    pub(crate) fn af_packet(
        openers: &Openers<'_>,
        device: &str,
        queues: usize,
        settings: &Settings,
    ) -> Result<(Vec<BoxedPort>, Duration), PortError> {
        let pool = Pool::new(COPIES + settings.ring() * queues, CHUNK_BYTES, HEADROOM);
        let BurstSettings { rx, tx, drain_us, .. } = settings.burst;
        let instruction = |Instruction { code, jumps, operand }: &_| FilterInstruction {
            code: *code,
            jumps: *jumps,
            operand: *operand,
        };
        let config = AfPacketConfig {
            program: openers.program.iter().map(instruction).collect(),
            burst_frames: rx,
            send_frames: tx,
            drain_us,
            ..AfPacketConfig::new(device)
        };
        let ports = AfPacketPort::open_queues(&*openers.opener, &config, queues as u16, &pool)?;
        let idle_latency = ports.first().map(AfPacketPort::block_timeout).unwrap_or_default();
        let ports = ports.into_iter().map(|port| Box::new(port) as BoxedPort).collect();
        Ok((ports, idle_latency))
    }

    pub(crate) fn tun(
        opener: &dyn Opener,
        (device, gone): (&str, Gone),
        queues: usize,
        settings: &Settings,
    ) -> Result<Vec<BoxedPort>, PortError> {
        let burst = settings.burst;
        let chunks = CHUNKS.max(2 * burst.rx) + settings.ring();
        let pool = Pool::new(chunks * queues, CHUNK_BYTES, HEADROOM);
        let config = TunConfig {
            name: device.to_owned(),
            queues: queues as u16,
            offload: true,
            burst_frames: burst.rx,
            // Who opens a device again loads no program.
            lanes: (gone == Gone::End).then(lanes::lanes),
        };
        let ports = TunPort::open_by(opener, &config, &pool)?;
        Ok(ports.into_iter().map(|port| Box::new(port) as BoxedPort).collect())
    }
}

#[cfg(not(target_os = "linux"))]
mod devices {
    use std::io;
    use std::time::Duration;

    use pktio::{Opener, PortError};

    use super::{BoxedPort, Openers, Settings};
    use crate::config::Gone;

    fn none(device: &str) -> PortError {
        let source = io::ErrorKind::Unsupported.into();
        PortError::Io { name: device.to_owned(), offset: 0, source }
    }

    pub(crate) fn found(device: &str) -> Result<String, PortError> {
        Ok(device.to_owned())
    }

    pub(crate) fn af_packet(
        _: &Openers<'_>,
        device: &str,
        _: usize,
        _: &Settings,
    ) -> Result<(Vec<BoxedPort>, Duration), PortError> {
        Err(none(device))
    }

    pub(crate) fn tun(
        _: &dyn Opener,
        (device, _): (&str, Gone),
        _: usize,
        _: &Settings,
    ) -> Result<Vec<BoxedPort>, PortError> {
        Err(none(device))
    }
}
