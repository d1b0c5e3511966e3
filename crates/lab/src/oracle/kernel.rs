//! [`Kernel`]: the kernel with a scene set up in a namespace of its own, asked about packets.
//!
//! Contract: everything happens on the thread that owns the namespace, and a packet has left the stack
//! when [`Kernel::send`] returns. At raw PREROUTING the survivors are seen by an NFLOG rule in mangle
//! PREROUTING, which comes next, and dropped there: so no packet needs a route. On FORWARD they are read
//! from the outgoing device.

use std::io;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rules::model::{Counters, Family};

use super::counters::Reader;
use super::load::restore;
use super::nflog::{self, Listener};
use super::tun::Tun;
use super::veth::Veth;
use crate::scene::{Placement, Scene, Wire, serial};

/// What follows the raw table: survivors are logged, and go no further. ICMP errors of the stack itself
/// stay in it, for one to an address of ours would come back in.
const SENTINEL: &str = "*mangle\n:PREROUTING ACCEPT [0:0]\n\
    -A PREROUTING -j NFLOG --nflog-group 5 --nflog-size 64\n-A PREROUTING -j DROP\n-A OUTPUT -j DROP\nCOMMIT\n";
/// How long the namespace may take to have its routes.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of a survivor that are looked at.
const LOGGED: u32 = 64;

/// A packet that got through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    /// Its number, as [`serial`] reads it.
    pub serial: u16,
    /// Its mark, where it is seen (raw placement).
    pub mark: Option<u32>,
    /// Its bytes from the network header on; the first 64 in the raw placement.
    pub bytes: Vec<u8>,
}

/// Counters of one chain: rules in order, then the policy or the invisible return.
pub type Chain = (&'static str, String, Vec<Counters>);

#[derive(Debug)]
enum Port {
    Tun(Tun),
    Veth(Veth),
}

/// The kernel in a scene.
#[derive(Debug)]
pub struct Kernel {
    scene: Scene,
    port: Port,
    reader: Reader,
    survivors: Option<Listener>,
    trace: Option<Listener>,
    buffer: Vec<u8>,
}

impl Kernel {
    /// Sets the scene up in the calling thread's namespace, which must be fresh.
    pub fn new(scene: Scene) -> io::Result<Self> {
        let port = match scene.wire {
            Wire::Tun | Wire::Tap => Port::Tun(Tun::new(&scene)?),
            Wire::Veth => Port::Veth(Veth::new(&scene)?),
        };
        wait_for_routes(scene)?;
        let raw = scene.placement == Placement::Raw;
        let survivors = raw.then(|| Listener::bind(nflog::SURVIVORS, LOGGED)).transpose()?;
        let reader = Reader::open(scene.family)?;
        Ok(Self { scene, port, reader, survivors, trace: None, buffer: vec![0; 1 << 16] })
    }

    /// Loads rules in place of those before; every counter and state starts anew.
    pub fn load(&mut self, rules: &str) -> io::Result<()> {
        let sentinel = if self.scene.placement == Placement::Raw { SENTINEL } else { "" };
        restore(self.scene.family, &format!("{rules}{sentinel}"))
    }

    /// Loads rules whose every match of a packet is logged.
    pub fn load_traced(&mut self, rules: &str) -> io::Result<()> {
        self.trace = Some(Listener::bind(nflog::TRACE, LOGGED)?);
        let trace = "-A PREROUTING -j TRACE\n";
        let traced = match rules.split_once("*raw\n") {
            Some((before, raw)) => {
                let first = raw.find("\n-A ").map_or(raw.find("COMMIT").unwrap_or(0), |at| at + 1);
                format!("{before}*raw\n{}{trace}{}", &raw[..first], &raw[first..])
            }
            None => format!("{rules}*raw\n{trace}COMMIT\n"),
        };
        self.load(&traced)
    }

    /// Sends one frame.
    pub fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        match &mut self.port {
            Port::Tun(tun) => tun.send(frame),
            Port::Veth(veth) => veth.send(frame),
        }
    }

    /// The packets that got through since the last call.
    pub fn survivors(&mut self) -> io::Result<Vec<Survivor>> {
        let mut found = Vec::new();
        let mut add = |bytes: &[u8], mark| {
            if let Some(serial) = serial(bytes) {
                found.push(Survivor { serial, mark, bytes: bytes.to_vec() });
            }
        };
        if let Some(listener) = &mut self.survivors {
            listener.drain(|logged| add(logged.payload, Some(logged.mark)))?;
            return Ok(found);
        }
        loop {
            let received = match &mut self.port {
                Port::Tun(tun) => tun.receive(&mut self.buffer)?,
                Port::Veth(veth) => veth.receive(&mut self.buffer)?,
            };
            match received {
                Some(len) => add(&self.buffer[..len], None),
                None => return Ok(found),
            }
        }
    }

    /// Rules that matched since the last call, as TRACE names them, without the implicit returns.
    pub fn traced(&mut self) -> io::Result<Vec<String>> {
        let mut steps = Vec::new();
        let Some(listener) = &mut self.trace else { return Ok(steps) };
        let tables = self.scene.tables();
        listener.drain(|logged| {
            let Some(step) = logged.prefix.strip_prefix("TRACE: ") else { return };
            let mut parts = step.trim_end().split(':');
            let mut part = || parts.next().unwrap_or("");
            let (table, chain, kind, number) = (part(), part(), part(), part());
            if tables.contains(&table) && matches!(kind, "rule" | "policy") {
                // The TRACE rule itself stands first.
                let shift = usize::from((table, chain) == ("raw", "PREROUTING"));
                let number = number.parse::<usize>().unwrap_or(0) - shift;
                steps.push(format!("{table}:{chain}:{kind}:{number}"));
            }
        })?;
        Ok(steps)
    }

    /// The counters of every chain of the scene's tables.
    pub fn counters(&mut self) -> io::Result<Vec<Chain>> {
        let mut all = Vec::new();
        for table in self.scene.tables() {
            let chains = self.reader.read(table)?;
            all.extend(chains.into_iter().map(|chain| (*table, chain.chain, chain.entries)));
        }
        Ok(all)
    }

    /// Family of the scene.
    #[must_use]
    pub fn family(&self) -> Family {
        self.scene.family
    }
}

/// Waits until the namespace has the routes that tamis is told of: IPv6 adds those of an address only when
/// it has heard that the link is up, which on a busy machine takes a while.
pub(super) fn wait_for_routes(scene: Scene) -> io::Result<()> {
    let wanted = scene.routes();
    let start = Instant::now();
    loop {
        let found = routes(scene.family)?;
        if found == wanted {
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            return Err(io::Error::other(format!("routes never came up, only\n{found}")));
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// The routes of the calling thread's namespace, as [`Scene::routes`] writes them.
fn routes(family: Family) -> io::Result<String> {
    let family = if family == Family::Ipv6 { "-6" } else { "-4" };
    let args = [family, "route", "show", "table", "all"];
    let text =
        String::from_utf8_lossy(&Command::new("ip").args(args).output()?.stdout).into_owned();
    let line = |line: &str| {
        let line = line.trim_end();
        // A default route without a gateway prints its scope.
        let short = line.strip_suffix(" scope link").filter(|line| line.starts_with("default"));
        format!("{}\n", short.unwrap_or(line))
    };
    Ok(text.lines().map(line).collect())
}
