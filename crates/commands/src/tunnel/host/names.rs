//! Servers that the host asks for names: by systemd-resolved where it runs, or else by resolvconf.

use std::path::Path;

use anyhow::Result;
use live::config::tunnel::TunnelSettings;

use super::commands::{Command, Host, is_there};
use crate::screen;

/// Where systemd-resolved is while it runs.
const RESOLVED: &str = "/run/systemd/resolve";

/// Sets them.
pub(super) fn set(tunnel: &TunnelSettings, host: &mut Host) -> Result<()> {
    match (tunnel.dns.is_empty(), Path::new(RESOLVED).is_dir()) {
        (true, _) => Ok(()),
        (false, true) if is_there("resolvectl") => by_resolved(tunnel, host),
        (false, _) if is_there("resolvconf") => by_resolvconf(tunnel, host),
        (false, _) => {
            let lines = tunnel.dns.iter().map(|dns| format!("nameserver {dns}"));
            screen::tell(&format!(
                "warning: dns is not set: neither systemd-resolved nor resolvconf is there; put this first into \
                 /etc/resolv.conf: {}",
                lines.collect::<Vec<_>>().join(", ")
            ));
            Ok(())
        }
    }
}

fn by_resolved(tunnel: &TunnelSettings, host: &mut Host) -> Result<()> {
    let name = &*tunnel.name;
    let servers: Vec<String> = tunnel.dns.iter().map(ToString::to_string).collect();
    let args: Vec<&str> = ["dns", name].into_iter().chain(servers.iter().map(|it| &**it)).collect();
    host.step(&Command::new("resolvectl", &args), Command::new("resolvectl", &["revert", name]))?;
    // Without domains it is asked for all names.
    let all = ["~.".to_owned()];
    let domains = if tunnel.search.is_empty() { &all[..] } else { &tunnel.search[..] };
    let args = ["domain", name].into_iter().chain(domains.iter().map(|it| &**it));
    Command::new("resolvectl", &args.collect::<Vec<_>>()).run().map(drop)
}

fn by_resolvconf(tunnel: &TunnelSettings, host: &mut Host) -> Result<()> {
    let name = &*tunnel.name;
    let mut lines: String = tunnel.dns.iter().map(|dns| format!("nameserver {dns}\n")).collect();
    if !tunnel.search.is_empty() {
        lines += &format!("search {}\n", tunnel.search.join(" "));
    }
    let set = Command::new("resolvconf", &["-a", name, "-m", "0", "-x"]).reading(&lines);
    host.step(&set, Command::new("resolvconf", &["-d", name, "-f"]))
}
