//! Two TUN devices, each in a namespace of its own, and a thread that hands frames from one to the other.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use packet::{Checksums, Link, Superframe, checksum, parse};
use pktio::{
    Burst, ChecksumState, FrameBuf, LiveMeta, Pool, Port, Readiness, Stats, TunConfig, TunPort,
};

use super::namespace::Namespace;
use super::sys;

/// How frames get from one device to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The kernel hands over frames as they would be on a wire.
    Finished,
    /// The kernel hands over superframes, which go into the other device whole.
    Whole,
    /// The kernel hands over superframes, which are cut and finished here.
    Cut,
}

/// What the thread saw.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Frames that stood for several.
    pub(super) superframes: u64,
    /// Frames whose checksum was not finished.
    pub(super) unfinished: u64,
    /// Bytes of the longest frame received, and of the longest sent.
    pub(super) longest: [usize; 2],
    pub(super) stats: [Stats; 2],
}

/// Frames received at once.
const BURST: usize = 32;

/// The two ends.
pub(super) struct Joined {
    pub(super) ends: [Namespace; 2],
    is_over: Arc<AtomicBool>,
    loops: JoinHandle<Seen>,
}

pub(super) fn config(queues: u16, offload: bool) -> TunConfig {
    TunConfig { name: "tun0".into(), queues, offload, burst_frames: BURST, lanes: None }
}

/// A pool for superframes. The memory of its chunks is touched only as far as frames reach.
pub(super) fn pool(chunks: usize) -> Pool {
    Pool::new(chunks, 64 + TunPort::FRAME_BYTES, 64)
}

/// Gives `tun0` its addresses: `10.77.0.HOST` and `fd77::HOST`.
pub(super) fn set_up(namespace: &Namespace, host: u8, mtu: usize) {
    namespace.command("ip link set lo up");
    namespace.command(&format!("ip addr add 10.77.0.{host}/24 dev tun0"));
    namespace.command(&format!("ip addr add fd77::{host}/64 dev tun0 nodad"));
    namespace.command(&format!("ip link set tun0 mtu {mtu} txqueuelen 2000 up"));
}

impl Joined {
    /// `None`, where the machine or the user cannot; that was said.
    pub(super) fn new(way: Way, mtu: usize) -> Option<Self> {
        if fs::metadata("/dev/net/tun").is_err() {
            eprintln!("SKIPPED: no TUN devices");
            return None;
        }
        let pool = pool(256);
        let ends = [Namespace::new()?, Namespace::new()?];
        let ports = ends.each_ref().map(|end| {
            let (config, pool) = (config(1, way != Way::Finished), pool.clone());
            let mut ports = end.run(move || TunPort::open(&config, &pool)).unwrap();
            ports.pop().unwrap()
        });
        (1..).zip(&ends).for_each(|(host, end)| set_up(end, host, mtu));
        let is_over = Arc::<AtomicBool>::default();
        let told = Arc::clone(&is_over);
        let loops = thread::spawn(move || join(ports, way, &told));
        Some(Self { ends, is_over, loops })
    }

    /// Ends the thread; what it saw.
    pub(super) fn end(self) -> Seen {
        self.is_over.store(true, Ordering::Relaxed);
        self.loops.join().unwrap()
    }
}

/// Hands over frames until it is over.
fn join(mut ports: [TunPort; 2], way: Way, is_over: &AtomicBool) -> Seen {
    // For all that a burst of superframes is cut to.
    let pieces = Pool::new(BURST * 64, 9000, 0);
    let mut seen = Seen::default();
    let mut burst = Burst::with_capacity(0);
    let mut out = Burst::with_capacity(0);
    while !is_over.load(Ordering::Relaxed) {
        let mut is_idle = true;
        for from in 0..2 {
            is_idle &= ports[from].rx_burst(&mut burst).unwrap() == 0;
            note(&burst, &mut seen);
            if way == Way::Cut {
                finish(&mut burst, &pieces, &mut out);
            }
            let out = if way == Way::Cut { &mut out } else { &mut burst };
            seen.longest[1] = out.iter().map(|f| f.bytes.len()).fold(seen.longest[1], usize::max);
            while !out.is_empty() {
                ports[1 - from].tx_burst(out).unwrap();
            }
        }
        if is_idle {
            let descriptor = |port: &TunPort| {
                let Readiness::Descriptor(fd) = port.readiness() else { panic!("it has one") };
                fd.try_clone_to_owned().unwrap()
            };
            let fds = ports.each_ref().map(descriptor);
            sys::wait(&fds.each_ref().map(std::os::fd::AsFd::as_fd), 20).unwrap();
        }
    }
    seen.stats = ports.each_ref().map(Port::stats);
    seen
}

fn note(burst: &Burst, seen: &mut Seen) {
    for (index, frame) in burst.iter().enumerate() {
        let live = burst.live(index).unwrap();
        seen.superframes += u64::from(live.segments.is_some());
        seen.unfinished += u64::from(matches!(live.checksum, ChecksumState::Unfinished { .. }));
        seen.longest[0] = seen.longest[0].max(frame.bytes.len());
    }
}

/// Moves all frames to `out` as they would be on a wire.
fn finish(burst: &mut Burst, pieces: &Pool, out: &mut Burst) {
    for frame in burst.drain(usize::MAX) {
        let pktio::Taken::Moved(frame) = frame else { panic!("a TUN port has memory") };
        let mut frame = frame.into_buf();
        let live = std::mem::take(frame.live_mut());
        if let Some(segments) = live.segments {
            cut(&frame, segments.size, pieces, out);
            continue;
        }
        if let ChecksumState::Unfinished { start, offset } = live.checksum {
            assert!(checksum::complete(frame.bytes_mut(), start.into(), offset.into()));
        }
        out.push_frame(frame);
    }
}

fn cut(frame: &FrameBuf, size: u16, pieces: &Pool, out: &mut Burst) {
    let bytes = frame.bytes();
    let headers = parse(Link::Raw, bytes, bytes.len(), Checksums::Verify);
    let superframe = Superframe::new(bytes, &headers, size).unwrap();
    for index in 0..superframe.count() {
        let mut piece = pieces.take().unwrap();
        let room = piece.grow_back(superframe.piece_len(index).unwrap()).unwrap();
        superframe.write(index, room).unwrap();
        piece.meta = frame.meta;
        assert_eq!(*piece.live(), LiveMeta::default());
        out.push_frame(piece);
    }
}
