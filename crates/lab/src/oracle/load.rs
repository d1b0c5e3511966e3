//! Loads save text into the kernel with the legacy restore commands.

use std::fs;
use std::io;
use std::process::Command;

use host::Kernel;
use rules::model::Family;

use super::netns::feed;

/// Replaces the tables that `text` names, in the calling thread's namespace.
pub fn restore(family: Family, text: &str) -> io::Result<()> {
    let tool = match family {
        Family::Ipv6 => "ip6tables-legacy-restore",
        _ => "iptables-legacy-restore",
    };
    feed(&mut Command::new(tool), text)
}

/// What the oracle needs and this machine lacks, if anything: named in one line.
#[must_use]
pub fn lacking() -> Option<String> {
    for tool in ["iptables-legacy-restore", "ip6tables-legacy-restore", "ip"] {
        if Command::new(tool).arg("--version").output().is_err() && tool != "ip" {
            return Some(format!("{tool} is not installed"));
        }
    }
    super::netns::in_fresh(|| {
        super::sys::open_tun("t0", false)?;
        restore(Family::Ipv4, "*raw\nCOMMIT\n")?;
        restore(Family::Ipv6, "*raw\nCOMMIT\n")
    })
    .err()
    .map(|error| error.to_string())
}

/// First line of what a tool says about its version.
#[must_use]
pub fn version(tool: &str) -> String {
    let output = Command::new(tool).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.ok().and_then(|text| text.lines().next().map(str::to_owned)).unwrap_or_default()
}

/// The running kernel's version, if it can be read.
#[must_use]
pub fn running() -> Option<Kernel> {
    let read = |name| fs::read_to_string(format!("/proc/sys/kernel/{name}"));
    let uname = format!("Linux {} {}", read("osrelease").ok()?.trim(), read("version").ok()?);
    Kernel::parse_uname(&uname).ok()
}
