//! Two namespaces and an Ethernet pair between them: `e0` is the port's, `p0` is held to it.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use pktio::{AfPacketConfig, AfPacketPort, Burst, LiveMeta, Pool, Port, PortError, Readiness};

use super::sys;
use crate::tun::namespace::Namespace;
use crate::tun::sys::wait;

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Wire {
    pub(crate) ours: Namespace,
    pub(crate) theirs: Namespace,
}

/// A namespace whose stack says nothing by itself.
pub(crate) fn quiet_namespace() -> Option<Namespace> {
    let namespace = Namespace::new()?;
    namespace.run(|| {
        for which in ["all", "default"] {
            let setting = format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6");
            // Without IPv6 it is quiet anyway.
            let _ = fs::write(setting, "1");
        }
    });
    Some(namespace)
}

/// Joins device `near` of one namespace with `far` of the other.
pub(crate) fn join((here, near): (&Namespace, &str), (there, far): (&Namespace, &str)) {
    let thread = there.run(|| fs::read_link("/proc/thread-self").unwrap());
    let thread = thread.file_name().unwrap().to_str().unwrap().to_string();
    here.command(&format!("ip link add dev {near} type veth peer name {far} netns {thread}"));
    here.command(&format!("ip link set {near} up"));
    there.command(&format!("ip link set {far} up"));
}

impl Wire {
    /// `None`, where the user cannot; that was said.
    pub(crate) fn new() -> Option<Self> {
        let (ours, theirs) = (quiet_namespace()?, quiet_namespace()?);
        join((&ours, "e0"), (&theirs, "p0"));
        Some(Self { ours, theirs })
    }

    /// A port on `e0`.
    pub(crate) fn port(&self, config: &AfPacketConfig, pool: &Pool) -> AfPacketPort {
        open(&self.ours, config, pool).unwrap()
    }

    /// A plain socket on `p0`.
    pub(crate) fn peer(&self) -> File {
        plain(&self.theirs, "p0")
    }
}

pub(crate) fn open(
    namespace: &Namespace,
    config: &AfPacketConfig,
    pool: &Pool,
) -> Result<AfPacketPort, PortError> {
    let (config, pool) = (config.clone(), pool.clone());
    namespace.run(move || AfPacketPort::open(&config, &pool))
}

/// A ring of as few and as short blocks as can be.
pub(crate) fn small(blocks: u32) -> AfPacketConfig {
    AfPacketConfig { blocks, block_bytes: 4096, ..AfPacketConfig::new("e0") }
}

pub(crate) fn no_pool() -> Pool {
    Pool::new(0, 0, 0)
}

pub(crate) fn index(namespace: &Namespace, device: &str) -> u32 {
    let line = namespace.command(&format!("ip -o link show dev {device}"));
    line.split(':').next().unwrap().parse().unwrap()
}

/// A plain socket on a device.
pub(crate) fn plain(namespace: &Namespace, device: &str) -> File {
    let index = index(namespace, device);
    namespace.run(move || sys::packet_socket(index)).unwrap()
}

/// Waits until the port may have something, a little; whether it may.
pub(crate) fn rest(port: &impl Port) -> bool {
    let Readiness::Descriptor(fd) = port.readiness() else { panic!("it has one") };
    wait(&[fd], 50).unwrap()
}

/// Receives until there are `wanted` frames; copies, with what the port knows of them.
pub(crate) fn receive(port: &mut impl Port, wanted: usize) -> Vec<(Vec<u8>, LiveMeta)> {
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
    assert_eq!(found.len(), wanted, "{:?}", port.stats());
    found
}

/// What the port has after a while of nothing.
pub(crate) fn drain(port: &mut AfPacketPort) -> Vec<Vec<u8>> {
    after(port, 2 * port.block_timeout() + Duration::from_millis(20))
}

/// What a port has after so long.
pub(crate) fn after(port: &mut impl Port, pause: Duration) -> Vec<Vec<u8>> {
    std::thread::sleep(pause);
    let mut burst = Burst::with_capacity(0);
    let mut found = Vec::new();
    while port.rx_burst(&mut burst).unwrap() > 0 {
        found.extend(burst.iter().map(|frame| frame.bytes.to_vec()));
    }
    found
}

/// The next frame that a plain socket has.
pub(crate) fn read(mut socket: &File) -> Vec<u8> {
    let mut room = vec![0; 1 << 17];
    assert!(wait(&[socket.as_fd()], PATIENCE.as_millis() as i32).unwrap(), "nothing came");
    let length = socket.read(&mut room).unwrap();
    room.truncate(length);
    room
}

pub(crate) fn write(mut socket: &File, frame: &[u8]) {
    assert_eq!(socket.write(frame).unwrap(), frame.len());
}

/// A frame of a protocol that no stack knows, with its number, to a host that is not there.
pub(crate) fn frame(number: u32, length: usize) -> Vec<u8> {
    let header = [0x02, 0, 0, 0, 0, 9, 0x02, 0, 0, 0, 0, 8, 0x88, 0xb5];
    let fill = (0..).map(|at: u32| (number.wrapping_mul(31) ^ at.wrapping_mul(7)) as u8);
    let bytes = header.into_iter().chain(number.to_be_bytes()).chain(fill);
    bytes.take(length).collect()
}

/// The number of such a frame, which has to be whole.
pub(crate) fn number(bytes: &[u8]) -> u32 {
    let number = u32::from_be_bytes(*bytes[14..].first_chunk().unwrap());
    assert!(bytes == frame(number, bytes.len()), "frame {number} is another");
    number
}
