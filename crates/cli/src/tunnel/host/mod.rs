//! What a tunnel changes on its host, by the host's own programs: addresses and the MTU of the device, routes to
//! allowed prefixes, servers of names, and commands of the configuration.
//!
//! Contract: each step that does not go with the device notes what undoes it before the next one is taken, and [`Host`]
//! undoes them in reverse, also after an error half-way. An error names the command and what it said.
//!
//! Source: wg-quick(8), and its script for Linux; ip-rule(8), ip-route(8), resolvectl(1), resolvconf(8).

mod commands;
mod names;
mod routes;

use std::path::Path;

use anyhow::{Result, bail};
use dataplane::run::config::tunnel::TunnelSettings;

use crate::screen;

use commands::Command;
pub(super) use commands::ip;
#[cfg(target_os = "linux")]
pub(super) use commands::is_there;

/// A host that is ready for a tunnel; with this it is as it was before.
#[derive(Default)]
pub(super) struct Host {
    undo: Vec<Command>,
}

impl Host {
    /// Makes the host ready for a tunnel whose device is there.
    ///
    /// # Errors
    /// A command failed; what was done before it is undone.
    pub(super) fn ready(tunnel: &TunnelSettings) -> Result<Self> {
        let mut host = Self::default();
        let name = &*tunnel.name;
        ip(&["link", "set", "dev", name, "mtu", &tunnel.mtu.to_string()])?;
        if Path::new("/proc/sys/net/ipv6").exists() {
            // No link-local address of the kernel's own: nobody solicits routers by it, which no peer would be.
            ip(&["link", "set", "dev", name, "addrgenmode", "none"])?;
        }
        for (address, bits) in &tunnel.addresses {
            let family = if address.is_ipv6() { "-6" } else { "-4" };
            ip(&[family, "address", "add", &format!("{address}/{bits}"), "dev", name])?;
        }
        ip(&["link", "set", "dev", name, "up"])?;
        routes::add(tunnel, &mut host)?;
        names::set(tunnel, &mut host)?;
        Ok(host)
    }

    /// Does something that does not go with the device.
    fn step(&mut self, done: &Command, undone: Command) -> Result<()> {
        done.run()?;
        self.undo.push(undone);
        Ok(())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for undone in self.undo.drain(..).rev() {
            if let Err(error) = undone.run() {
                screen::tell(&format!("warning: {error:#}"));
            }
        }
    }
}

/// Refuses a tunnel whose device somebody else has.
///
/// # Errors
/// There is one of its name.
pub(super) fn is_free(tunnel: &TunnelSettings) -> Result<()> {
    let name = &tunnel.name;
    if Path::new("/sys/class/net").join(name).exists() {
        bail!("there is a device {name} already: another tunnel's, or ip link delete {name}");
    }
    Ok(())
}

/// Runs commands of the configuration, in their order.
///
/// # Errors
/// One failed, and those after it were not run.
pub(super) fn hooks(tunnel: &TunnelSettings, commands: &[String]) -> Result<()> {
    let env = ("TAMIS_TUNNEL", &*tunnel.name);
    commands
        .iter()
        .try_for_each(|command| Command::new("sh", &["-c", command]).with(env).run().map(drop))
}

/// The same, where what fails is told and changes nothing.
pub(super) fn last_hooks(tunnel: &TunnelSettings, commands: &[String]) {
    for command in commands {
        if let Err(error) = hooks(tunnel, std::slice::from_ref(command)) {
            screen::tell(&format!("warning: {error:#}"));
        }
    }
}

/// Sends a process SIGTERM.
///
/// # Errors
/// It is gone, or somebody else's.
pub(super) fn ask_to_end(process: i32) -> Result<()> {
    Command::new("kill", &[&process.to_string()]).run().map(drop)
}
