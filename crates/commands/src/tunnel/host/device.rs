//! The device of a tunnel: its name, MTU and addresses, and what of the host leads to it.

use std::path::Path;

use anyhow::{Result, bail};
use live::config::tunnel::TunnelSettings;

use super::commands::{Host, ip};
use super::{names, routes};

/// Refuses a tunnel whose device somebody else has.
///
/// # Errors
/// There is one of its name.
pub(in super::super) fn is_free(tunnel: &TunnelSettings) -> Result<()> {
    let name = &tunnel.name;
    if Path::new("/sys/class/net").join(name).exists() {
        bail!("there is a device {name} already: another tunnel's, or ip link delete {name}");
    }
    Ok(())
}

/// Makes the host ready for a tunnel whose device is there.
///
/// # Errors
/// A command failed; what was done before it is undone.
pub(in super::super) fn ready(tunnel: &TunnelSettings) -> Result<Host> {
    let mut host = Host::default();
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
