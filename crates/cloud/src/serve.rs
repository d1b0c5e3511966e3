//! [`run`]: the sockets and the clock of a [`Server`], in one thread, besides the workers of its relay.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use overlay::Now;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::clock::Clock;
use crate::control::{self, Request};
use crate::streams::{Streams, is_stream};
use crate::workers::{Relaying, Workers};

/// How long nothing is looked at while nothing comes: timers of the tunnel are not finer.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// Datagrams of one socket that are taken in a turn.
const BURST: usize = 64;
/// Bytes of the longest datagram.
const LONGEST: usize = 65_535;
/// Nanoseconds between two looks at the timers of all peers.
const TICKS: u64 = overlay::limits::SECOND / 100;
/// Nanoseconds between two looks for what is too old.
const SWEEP: u64 = overlay::limits::SECOND;
/// Exit code where a socket or the database failed.
pub(crate) const FAILED: u8 = 1;

/// What serves: datagrams in, datagrams out.
pub(crate) trait Server {
    /// Takes a datagram of the tunnel.
    fn arrived(&mut self, datagram: &mut [u8], from: SocketAddr, now: Now);

    /// Where a datagram goes that came to a port of the relay.
    fn relayed(
        &mut self,
        port: u16,
        from: SocketAddr,
        datagram: &[u8],
        now: Now,
    ) -> Option<SocketAddr>;

    /// Looks for the path of an unknown source of a datagram that a worker of the relay got; returns whether the datagram is to
    /// be relayed, rather than for this server.
    fn look_for(&mut self, port: u16, from: SocketAddr, datagram: &[u8], now: Now) -> bool;

    /// Does what time brings.
    fn tick(&mut self, now: Now);

    /// Forgets what is too old: now and then.
    fn sweep(&mut self, now: Now);

    /// Keeps what is to be kept, and then does what follows from what came.
    fn settle(&mut self, now: Now) -> Result<()>;

    /// The next datagram to send from the tunnel's port.
    fn take(&mut self) -> Option<(SocketAddr, Vec<u8>)>;

    /// The next port of the relay from which a byte is sent to a place that did not ask for it.
    fn take_stray(&mut self) -> Option<(u16, SocketAddr)> {
        None
    }

    /// Reads again what may change while it runs; says so where that is wrong.
    fn reload(&mut self, config: &Path, now: Now) -> Result<()>;

    /// Answers a request of the control socket. What it changed is settled before.
    fn answer(&mut self, request: Request, now: Now) -> Result<Value>;
}

/// Where a server receives.
pub(crate) struct Places {
    /// Datagrams of the tunnel.
    pub(crate) tunnel: SocketAddr,
    /// Those that are relayed.
    pub(crate) relay: Option<Relaying>,
    /// The TCP port for both, of nodes whose UDP is blocked.
    pub(crate) tcp: Option<u16>,
    /// The control socket.
    pub(crate) control: Option<PathBuf>,
}

struct Sockets {
    tunnel: UdpSocket,
    relay: Option<Workers>,
    streams: Option<Streams>,
    control: Option<UnixListener>,
}

impl Sockets {
    fn open(places: &Places, clock: Clock) -> Result<Self> {
        let at = places.tunnel;
        let tunnel = UdpSocket::bind(at).with_context(|| format!("UDP {at}"))?;
        tunnel.set_nonblocking(true)?;
        let relay = places.relay.as_ref();
        let relay = relay.map(|relay| Workers::start(relay, at.ip(), clock)).transpose()?;
        let first = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos();
        let streams = |port| Streams::listen((places.tunnel.ip(), port).into(), first);
        let streams = places.tcp.map(streams).transpose()?;
        let listen =
            |path: &PathBuf| control::listen(path).with_context(|| path.display().to_string());
        let control = places.control.as_ref().map(listen).transpose()?;
        Ok(Self { tunnel, relay, streams, control })
    }

    /// Waits until something comes, or it is time for what is due; returns which connections are ready.
    fn wait(&self) -> Result<Vec<Option<u32>>> {
        let mut all = vec![PollFd::new(&self.tunnel, PollFlags::IN)];
        let bell = self.relay.as_ref().map(Workers::bell);
        all.extend(bell.iter().map(|bell| PollFd::new(bell, PollFlags::IN)));
        let (numbers, streams): (Vec<_>, Vec<_>) =
            self.streams.iter().flat_map(Streams::sources).unzip();
        let before = all.len();
        all.extend(streams);
        all.extend(self.control.iter().map(|it| PollFd::new(it, PollFlags::IN)));
        match poll(&mut all, Some(&TICK)) {
            // A signal came.
            Ok(0) | Err(Errno::INTR) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(error) => return Err(error).context("poll"),
        }
        let streams = numbers.into_iter().zip(&all[before..]);
        let ready = streams.filter(|(_, source)| !source.revents().is_empty());
        Ok(ready.map(|(number, _)| number).collect())
    }

    /// Sends a datagram from the tunnel's port or from one of the relay's. What is lost is sent again by who waits for it.
    fn send(&mut self, from: Option<u16>, to: SocketAddr, datagram: &[u8], now: Now) {
        match (from, &mut self.relay, &mut self.streams) {
            (_, _, Some(streams)) if is_stream(to) => streams.send(to, from, datagram, now.nanos),
            (Some(port), Some(relay), _) => relay.send(port, to, datagram),
            (None, ..) if !is_stream(to) => drop(self.tunnel.send_to(datagram, to)),
            _ => {}
        }
    }

    /// Sends what workers of the relay handed over.
    fn take_handed(&mut self, server: &mut impl Server, now: Now) -> Result<()> {
        let (Some(relay), streams) = (&mut self.relay, &mut self.streams) else { return Ok(()) };
        let look = |port, from, datagram: &_| server.look_for(port, from, datagram, now);
        let by_stream = |to, port, datagram: &_| {
            streams.iter_mut().for_each(|it| it.send(to, Some(port), datagram, now.nanos));
        };
        relay.turn(look, by_stream, now).context("the relay")
    }

    /// Takes datagrams that came through TCP connections.
    fn take_streams(
        &mut self,
        ready: &[Option<u32>],
        server: &mut impl Server,
        buffer: &mut [u8],
        now: Now,
    ) {
        let Some(streams) = &mut self.streams else { return };
        let (relay, mut relayed) = (&self.relay, Vec::new());
        streams.turn(ready, buffer, now.nanos, |from, port, datagram| {
            if !relay.as_ref().is_some_and(|relay| relay.has(port)) {
                server.arrived(datagram, from, now);
                return true;
            }
            if let Some(to) = server.relayed(port, from, datagram, now) {
                relayed.push((port, to, datagram.to_vec()));
            }
            false
        });
        for (port, to, datagram) in relayed {
            self.send(Some(port), to, &datagram, now);
        }
    }
}

/// Runs a server until it is asked to end.
pub(crate) fn run(
    server: &mut impl Server,
    places: &Places,
    (clock, config): (Clock, &Path),
    says: &str,
) -> Result<ExitCode> {
    let (stop, reload) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    for signal in [SIGINT, SIGTERM] {
        flag::register(signal, Arc::clone(&stop)).context("signals")?;
    }
    flag::register(SIGHUP, Arc::clone(&reload)).context("signals")?;
    let mut sockets = Sockets::open(places, clock)?;
    println!("{says}");
    let ended = serve(server, &mut sockets, (clock, config), [&stop, &reload]);
    if let Some(control) = &places.control {
        let _ = std::fs::remove_file(control);
    }
    match ended {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => {
            eprintln!("tamis-cloud: {}", packet::visible::word(&format!("{error:#}")));
            Ok(ExitCode::from(FAILED))
        }
    }
}

fn serve(
    server: &mut impl Server,
    sockets: &mut Sockets,
    (clock, config): (Clock, &Path),
    [stop, reload]: [&AtomicBool; 2],
) -> Result<()> {
    let mut buffer = vec![0; LONGEST];
    let (mut swept, mut ticked) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let ready = sockets.wait()?;
        let time = clock.now();
        if reload.swap(false, Ordering::Relaxed) {
            server.reload(config, time)?;
        }
        sockets.take_handed(server, time)?;
        sockets.take_streams(&ready, server, &mut buffer, time);
        for _ in 0..BURST {
            let Some((length, from)) = received(&sockets.tunnel, &mut buffer) else { break };
            server.arrived(&mut buffer[..length], from, time);
        }
        if time.nanos.saturating_sub(ticked) >= TICKS {
            ticked = time.nanos;
            server.tick(time);
        }
        if time.nanos.saturating_sub(swept) >= SWEEP {
            swept = time.nanos;
            server.sweep(time);
            sockets.streams.iter_mut().for_each(|streams| streams.sweep(time.nanos));
        }
        server.settle(time)?;
        if let Some(control) = &sockets.control {
            requests(server, control, time)?;
        }
        while let Some((port, to)) = server.take_stray() {
            sockets.send(Some(port), to, &[0], time);
        }
        while let Some((to, datagram)) = server.take() {
            sockets.send(None, to, &datagram, time);
        }
    }
    Ok(())
}

/// The next datagram of a socket. An error is that of a datagram that was sent before, and no more than a lost one.
fn received(socket: &UdpSocket, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
    loop {
        match socket.recv_from(buffer) {
            Ok(received) => return Some(received),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(_) => return None,
        }
    }
}

fn requests(server: &mut impl Server, listener: &UnixListener, now: Now) -> Result<()> {
    while let Ok((stream, _)) = listener.accept() {
        let answer = match control::request(&stream) {
            Ok(request) => server.answer(request, now)?,
            Err(error) => json!({ "error": format!("expected a request: {error}") }),
        };
        control::answer(&stream, &answer);
    }
    Ok(())
}
