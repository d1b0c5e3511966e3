//! Reports which back ends of ports work on this machine, and what is missing for the others.
//!
//! Contract: opens and closes what a port would, and makes nothing: no device, no frame is received.
//!
//! Source: `packet(7)`, `capabilities(7)`, `proc_pid_status(5)`; Linux `Documentation/networking/tuntap.rst`.

use std::fmt::Write;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};

use serde_json::{Value, json};

use crate::config::{Kind, Settings};
use crate::ports::device::is_like;
use crate::ports::interface::{self, Peer};

/// The finding where DPDK is not built in.
const NO_DPDK: (&str, &str) = (
    "not built into this tamis",
    "apt-get install libdpdk-dev, and build it again; or use af_packet",
);
/// The remedy where a device is in another namespace.
const ELSEWHERE: &str = "ip netns exec NAME tamis …";
/// The remedy where a capability is missing.
const AS_ROOT: &str = "run it as root, or once: \
    sudo setcap cap_net_raw,cap_net_admin+ep \"$(command -v tamis)\"";

/// Capabilities that back ends may need, with their numbers (`linux/capability.h`).
const CAPABILITIES: [(&str, u32); 4] =
    [("CAP_NET_ADMIN", 12), ("CAP_NET_RAW", 13), ("CAP_IPC_LOCK", 14), ("CAP_BPF", 39)];
const NET_ADMIN: &str = "CAP_NET_ADMIN";

/// What is missing for a port of AF_XDP whose device comes back once privileges are dropped, and what to do.
pub(crate) const IN_VAIN: (&str, &str) = (
    "is not opened again once it has gone and come back, as reopen = \"keep\" keeps no CAP_BPF",
    "reopen = \"parent\", or gone = \"end\" on the port",
);

/// The report about a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The kernel's release, where it says it.
    pub kernel: Option<String>,
    /// The capabilities of this process, as far as back ends may need them; `None` where they cannot be read.
    pub capabilities: Option<Vec<&'static str>>,
    /// Each back end, and each device that a configuration names.
    pub findings: Vec<Finding>,
}

/// The finding about a back end, or about a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The kind of port, and its device if the finding is about one.
    pub what: String,
    /// Whether the configuration needs it.
    pub is_needed: bool,
    /// What is missing, and what to do about it; `None` where it works.
    pub missing: Option<(String, String)>,
    /// The flaw of a back end that works, and what to do about it.
    pub odd: Option<(String, String)>,
}

/// Examines this machine, and what a configuration needs of it, if one is given; `has_dpdk` if the caller was built
/// with DPDK.
#[must_use]
pub fn examine(settings: Option<&Settings>, has_dpdk: bool) -> Report {
    let capabilities = capabilities();
    let kinds = || settings.iter().flat_map(|settings| &settings.ports).map(|port| &port.kind);
    let af_packet = packet_socket();
    let tun = tun(capabilities.as_deref());
    let dpdk = (!has_dpdk).then(|| (NO_DPDK.0.to_owned(), NO_DPDK.1.to_owned()));
    let finding = |what: &str, is_needed, missing| Finding {
        what: what.to_owned(),
        is_needed,
        missing,
        odd: None,
    };
    let mut findings = vec![
        finding("af_packet", kinds().any(|kind| matches!(kind, Kind::AfPacket { .. })), af_packet),
        finding("tun", kinds().any(|kind| matches!(kind, Kind::Tun { .. })), tun),
        finding("pcap", kinds().any(|kind| matches!(kind, Kind::Pcap { .. })), None),
        finding("af_xdp", kinds().any(|kind| matches!(kind, Kind::AfXdp { .. })), af_xdp()),
        finding("dpdk", kinds().any(|kind| matches!(kind, Kind::Dpdk { .. })), dpdk),
    ];
    findings.extend(kinds().filter_map(|kind| match kind {
        Kind::AfPacket { device, .. } => {
            Some(finding(&format!("af_packet {device}"), true, interface(device)))
        }
        Kind::AfXdp { device, .. } => Some(Finding {
            odd: left_undone(device),
            ..finding(&format!("af_xdp {device}"), true, interface(device))
        }),
        _ => None,
    }));
    let in_vain = settings.into_iter().flat_map(Settings::waited_for_in_vain);
    findings.extend(in_vain.map(|(_, device)| {
        let (why, todo) = IN_VAIN;
        finding(&format!("reopen {device}"), false, Some((why.to_owned(), todo.to_owned())))
    }));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").ok();
    Report { kernel: kernel.map(|text| text.trim().to_owned()), capabilities, findings }
}

impl Report {
    /// Whether everything works that the configuration needs.
    #[must_use]
    pub fn is_well(&self) -> bool {
        !self.findings.iter().any(|finding| finding.is_needed && finding.missing.is_some())
    }

    /// Formats the report as a document: `tamis.doctor/1`.
    #[must_use]
    pub fn json(&self) -> Value {
        let findings = self.findings.iter().map(|finding| {
            let Finding { what, is_needed, missing, odd } = finding;
            let (why, todo) = missing.clone().or_else(|| odd.clone()).unzip();
            let works = missing.is_none();
            json!({ "what": what, "works": works, "needed": is_needed, "why": why, "do": todo })
        });
        json!({
            "schema": "tamis.doctor/1",
            "kernel": self.kernel,
            "capabilities": self.capabilities,
            "ports": findings.collect::<Vec<_>>(),
        })
    }

    /// Formats the report for a screen: a line for each finding, with what is missing and what to do.
    #[must_use]
    pub fn text(&self) -> String {
        let kernel = self.kernel.as_deref().unwrap_or("not known");
        let held = match self.capabilities.as_deref() {
            None => "not known".to_owned(),
            Some([]) => "none of those that ports need".to_owned(),
            Some(held) => held.join(" "),
        };
        let mut text = format!("kernel        {kernel}\ncapabilities  {held}\n\n");
        let width = self.findings.iter().map(|finding| finding.what.len()).max().unwrap_or(0);
        for Finding { what, is_needed, missing, odd } in &self.findings {
            let needed = if *is_needed { "needed" } else { "" };
            let state = if missing.is_none() { "works" } else { "does not" };
            // Writing to a String cannot fail.
            let _ = write!(text, "{what:width$}  {state:8}  {needed:6}");
            if let Some((why, todo)) = missing.as_ref().or(odd.as_ref()) {
                let _ = write!(text, "  {why}: {todo}");
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        text
    }
}

/// Which of [`CAPABILITIES`] are in force.
fn capabilities() -> Option<Vec<&'static str>> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let held = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    let held = u64::from_str_radix(held.trim(), 16).ok()?;
    let has = |(_, number): &&(&str, u32)| held & (1 << number) != 0;
    Some(CAPABILITIES.iter().filter(has).map(|(name, _)| *name).collect())
}

/// What is missing for a packet socket.
#[cfg(target_os = "linux")]
pub(crate) fn packet_socket() -> Option<(String, String)> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
    // With no protocol it receives nothing.
    let opened = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None);
    let error = io::Error::from(opened.err()?);
    let todo = match error.kind() {
        ErrorKind::PermissionDenied => AS_ROOT,
        _ => "sudo modprobe af_packet",
    };
    Some((format!("no packet socket: {error}"), todo.to_owned()))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn packet_socket() -> Option<(String, String)> {
    Some(("packet sockets are Linux's".to_owned(), "use pcap".to_owned()))
}

/// What is missing for ports of AF_XDP.
#[cfg(target_os = "linux")]
pub(crate) fn af_xdp() -> Option<(String, String)> {
    use pktio::{AfXdpPort, XdpLacking};
    const CAPABILITIES: &str = "run it as root, or once: sudo setcap \
        cap_net_raw,cap_net_admin,cap_bpf+ep \"$(command -v tamis)\"";
    let lacking = AfXdpPort::probe().err()?;
    let (XdpLacking::Socket(error) | XdpLacking::Memory(_, error) | XdpLacking::Program(error)) =
        &lacking;
    let todo = match (&lacking, error.kind()) {
        (XdpLacking::Memory(..), _) => {
            "raise RLIMIT_MEMLOCK (ulimit -l unlimited), or add CAP_IPC_LOCK"
        }
        (_, ErrorKind::PermissionDenied) => CAPABILITIES,
        _ => "use af_packet, or Linux 5.9 or later with CONFIG_XDP_SOCKETS and CONFIG_BPF_SYSCALL",
    };
    Some((lacking.to_string(), todo.to_owned()))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn af_xdp() -> Option<(String, String)> {
    Some(("AF_XDP is Linux's".to_owned(), "use pcap".to_owned()))
}

/// What the other end of a virtual link leaves undone for a device whose frames AF_XDP takes, which sees nothing but
/// their bytes: checksums, superframes, VLAN tags.
#[cfg(target_os = "linux")]
fn left_undone(device: &str) -> Option<(String, String)> {
    const LEFT: &str = "may leave checksums unfinished, superframes whole and VLAN tags out";
    let off = |name: &str| format!("ethtool -K {name} tx off tso off gso off txvlan off");
    match interface::peer(device)? {
        Peer::Named(peer) => {
            let leaves = pktio::device::leaves_work(&peer).unwrap_or(true);
            leaves.then(|| (format!("its other end {peer} {LEFT}"), off(&peer)))
        }
        Peer::Elsewhere => {
            let why = format!("its other end, in another network namespace, {LEFT}");
            Some((why, format!("there: {}", off("PEER"))))
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn left_undone(_: &str) -> Option<(String, String)> {
    None
}

/// What is missing for a TUN device.
fn tun(capabilities: Option<&[&str]>) -> Option<(String, String)> {
    const CLONE: &str = "/dev/net/tun";
    let missing = |why: String, todo: &str| Some((why, todo.to_owned()));
    match OpenOptions::new().read(true).write(true).open(CLONE) {
        Err(error) if error.kind() == ErrorKind::NotFound => missing(
            format!("there is no {CLONE}"),
            "sudo modprobe tun, or of a container: --device /dev/net/tun",
        ),
        Err(error) => missing(format!("{CLONE}: {error}"), AS_ROOT),
        Ok(_) if capabilities.is_some_and(|held| !held.contains(&NET_ADMIN)) => missing(
            format!("{NET_ADMIN} is missing, except for a device that is this user's"),
            AS_ROOT,
        ),
        Ok(_) => None,
    }
}

/// What is missing for an interface.
fn interface(name: &str) -> Option<(String, String)> {
    let names = interface::names();
    let is_there = names.iter().any(|known| is_like(known, name));
    let todo = format!("name one of {}, or of another namespace: {ELSEWHERE}", names.join(" "));
    (!is_there).then(|| (format!("there is no interface {name}"), todo))
}
