//! tamis in series with the kernel: host - wire - router - host, in either order, with the same rules in both. Real
//! programs talk through them, and both must count alike.
//!
//! What the first one drops the second never sees. So ([`compare`]): the second drops nothing that the first let
//! through; each rule's counters differ by no more than that; and packets that are the same each time are counted by
//! the one in one order as by the other in the other order. The script is `series.sh`, on the stage of
//! [`crate::programs`].

pub mod compare;
mod settings;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::programs::stage;

pub use settings::{SETTINGS, Setting, Side, Source, forwarding};

/// Both ends' programs, and what they do.
const SCRIPT: &str = include_str!("series.sh");
/// Seconds after which a run is ended.
const LIMIT: &str = "300";
/// Programs that the script calls.
const PROGRAMS: [&str; 10] = [
    "curl",
    "dig",
    "dnsmasq",
    "ethtool",
    "ip6tables-legacy",
    "iperf3",
    "iptables-legacy",
    "nmap",
    "ssh",
    "vsftpd",
];
/// Which of the two a packet from host a meets first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// tamis.
    Before,
    /// The kernel.
    After,
}

impl Order {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Before, Self::After];

    /// As the script and its folder call it: where tamis is, seen from host a.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// What the ports of the wire are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Packet sockets.
    AfPacket,
    /// AF_XDP sockets.
    AfXdp,
    /// Devices of DPDK, over packet sockets (`net_af_packet`).
    Dpdk,
}

impl Backend {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::AfPacket, Self::AfXdp, Self::Dpdk];

    /// As a configuration calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AfPacket => "af_packet",
            Self::AfXdp => "af_xdp",
            Self::Dpdk => "dpdk",
        }
    }
}

/// Why nothing can be played here, if so.
#[must_use]
pub fn lacking() -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |program: &&str| {
        std::env::split_paths(&path)
            .chain([PathBuf::from("/usr/sbin")])
            .any(|folder| folder.join(program).exists())
    };
    let sshd = (!Path::new("/usr/sbin/sshd").exists()).then_some("sshd");
    let missing = PROGRAMS.iter().find(|program| !is_there(program)).copied().or(sshd);
    missing.map(|program| format!("{program} is not installed")).or_else(stage::lacking)
}

/// What is put in series with the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Wire<'t> {
    /// The program.
    pub tamis: &'t Path,
    /// What its ports are.
    pub backend: Backend,
}

/// Lets the hosts talk in that order, under `rules`, and leaves in `dir` what both counted. `size` is the length of the
/// longer transfers, in bytes.
///
/// # Errors
/// The script fails; with what it said.
pub fn play(
    setting: &Setting,
    rules: &str,
    order: Order,
    dir: &Path,
    wire: Wire<'_>,
    size: u32,
) -> io::Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    fs::create_dir_all(dir)?;
    let dir = dir.canonicalize()?;
    fs::write(dir.join("rules.save"), rules)?;
    let script = stage::script(&dir, SCRIPT, "series >$out/traffic.log 2>&1")?;
    let Setting { left, right, .. } = setting;
    let variables = [
        ("order", order.name()),
        ("family", setting.family.name()),
        ("left", left.interface),
        ("left_host", left.host),
        ("left_gate", left.gate),
        ("right", right.interface),
        ("right_host", right.host),
        ("right_gate", right.gate),
    ];
    let output = stage::command(LIMIT, &script)
        .env("out", &dir)
        .env("tamis", wire.tamis.canonicalize()?)
        .env("kind", wire.backend.name())
        .env("size", size.to_string())
        .env("big", size.to_string())
        .envs(variables)
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = fs::read_to_string(dir.join("traffic.log")).unwrap_or_default();
    let last: Vec<&str> = said.lines().rev().take(5).collect();
    let message = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{}: {} {last:?}", output.status, message.trim())))
}
