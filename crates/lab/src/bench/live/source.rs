//! The source of frames: a thread that sends the same 64 datagrams again and again.

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, path::PathBuf};

use packet::craft::{Addresses, Craft, Ethernet, Message};
use pktio::{AfPacketConfig, AfPacketPort, Burst, FrameMeta, Pool, Port};

use super::counts::{come, spent_in};

/// What the router's devices have, and the far host.
pub(super) const NEAR_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
pub(super) const NEAR: [u8; 4] = [10, 0, 0, 2];
pub(super) const FAR: [u8; 4] = [10, 0, 1, 2];
/// Of real time: nothing else on the machine is, and a nice value counts within a session alone.
pub(super) const PRIORITY: &str = "10";
/// Frames sent at a time, each of a flow of its own.
const FLOWS: u16 = 64;
/// Bytes of a frame, without its checksum.
pub(super) const FRAME_BYTES: usize = 60;
/// Rules that no packet matches, where there are any.
pub(super) const RULES: usize = 1000;
/// Bytes of headers of a datagram.
pub(super) const HEADERS: usize = 42;
/// Frames that may be on their way.
const WINDOW: u64 = 8192;
/// How many are sent between two looks at the far end.
const LOOK: u64 = 1024;
/// After so long without any frame at the far end those on their way are given up.
const LOST: Duration = Duration::from_millis(50);

/// How fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// As fast as it can.
    Full,
    /// No more than [`WINDOW`] frames are on their way.
    Behind,
}

/// The thread that sends, as `/proc` knows it.
static SENDER: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Nanoseconds that the sender was on a processor.
pub(super) fn spent() -> io::Result<u64> {
    let sender = SENDER.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
    sender.map_or(Ok(0), |thread| spent_in(&thread.join("schedstat")))
}

/// Sends until it is told to stop, on that core.
pub(super) fn send(to: [u8; 6], core: usize, pace: Pace, stop: &AtomicBool) -> io::Result<()> {
    let own = settle(core)?;
    *SENDER.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(own);
    let mut config = AfPacketConfig::new("a0");
    (config.blocks, config.promiscuous) = (2, false);
    let pool = Pool::new(64, 2048, 0);
    let mut port = AfPacketPort::open(&config, &pool).map_err(io::Error::other)?;
    let frames: Vec<Vec<u8>> = (0..FLOWS).map(|flow| frame(to, flow)).collect();
    let mut burst = Burst::new();
    let mut window = Window::new(pace)?;
    while !stop.load(Ordering::Relaxed) {
        if !window.is_open()? {
            // A look costs as much as some dozen frames, and those that are on their way take longer than this.
            thread::sleep(Duration::from_millis(5));
            continue;
        }
        burst.clear();
        for frame in &frames {
            let wire_length = frame.len() as u32;
            burst.push(frame, FrameMeta { wire_length, ..FrameMeta::default() });
        }
        window.sent += port.tx_burst(&mut burst).map_err(io::Error::other)? as u64;
    }
    Ok(())
}

/// How many frames are on their way.
struct Window {
    pace: Pace,
    sent: u64,
    /// How many were sent at the last look that found room.
    looked: u64,
    /// Frames that had come at the last look, and before the first one was sent.
    come: u64,
    before: u64,
    /// Of those sent, the ones that no longer count as on their way.
    given_up: u64,
    moved: Instant,
}

impl Window {
    fn new(pace: Pace) -> io::Result<Self> {
        let come = come()?;
        let moved = Instant::now();
        Ok(Self { pace, sent: 0, looked: 0, come, before: come, given_up: 0, moved })
    }

    /// Whether more may be sent.
    fn is_open(&mut self) -> io::Result<bool> {
        if self.pace == Pace::Full || self.sent < self.looked + LOOK {
            return Ok(true);
        }
        let come = come()?;
        if come != self.come {
            (self.come, self.moved) = (come, Instant::now());
        } else if self.moved.elapsed() > LOST {
            self.given_up = self.sent.saturating_sub(come - self.before);
            self.moved = Instant::now();
        }
        let is_open = self.sent < come - self.before + self.given_up + WINDOW;
        if is_open {
            self.looked = self.sent;
        }
        Ok(is_open)
    }
}

/// A datagram of a flow, [`FRAME_BYTES`] long.
pub(super) fn frame(to: [u8; 6], flow: u16) -> Vec<u8> {
    let addresses = Addresses::V4 { source: NEAR, destination: FAR };
    let mut craft = Craft::new(addresses, Message::udp(20_000 + flow, 9));
    let ethernet = Ethernet { destination: to, ..Ethernet::default() };
    craft.ethernet = Some(ethernet);
    craft.payload_len = FRAME_BYTES - HEADERS;
    craft.frame()
}

/// What rules that these frames do not match ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Both addresses: the rules of `tamis-bench rules`.
    Addresses,
    /// Source, protocol and port.
    Ports,
}

impl Shape {
    /// As figures name it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Addresses => "addresses",
            Self::Ports => "ports",
        }
    }
}

/// So many rules of a shape.
pub(super) fn rules(count: usize, shape: Shape) -> String {
    let mut text =
        "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n".to_owned();
    for number in 0..count as u32 {
        let source = Ipv4Addr::from(0xac10_0000 + number);
        let rest = match shape {
            Shape::Addresses => format!("-d {}/32", Ipv4Addr::from(0xac20_0000 + number)),
            Shape::Ports => format!("-p udp -m udp --dport {}", 1000 + number),
        };
        text += &format!("-A FORWARD -s {source}/32 {rest} -j DROP\n");
    }
    text + "COMMIT\n"
}

/// Keeps the calling thread on a core, before all others; the thread, as `/proc` knows it.
pub(super) fn settle(core: usize) -> io::Result<PathBuf> {
    let own = Path::new("/proc").join(fs::read_link("/proc/thread-self")?);
    pin(&own, core)?;
    Ok(own)
}

/// Keeps a thread on a core, before all others.
fn pin(thread: &Path, core: usize) -> io::Result<()> {
    let number = thread.file_name().map(|name| name.to_string_lossy().into_owned());
    let number = number.unwrap_or_default();
    let pinned = Command::new("taskset").args(["-cp", &core.to_string(), &number]).output()?;
    let raised = Command::new("chrt").args(["--rr", "-p", PRIORITY, &number]).output()?;
    if pinned.status.success() && raised.status.success() {
        return Ok(());
    }
    let said = [pinned.stderr, raised.stderr].concat();
    Err(io::Error::other(format!("taskset, chrt: {}", String::from_utf8_lossy(&said).trim())))
}
