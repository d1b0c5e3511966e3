//! What joins two hosts: tamis, or the kernel's WireGuard, whose behaviour is known, and whose keys are of the same form.

use super::super::hosts::{Hosts, INSIDE, INSIDE_V6, OUTSIDE, PORT, allowed};

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overlay {
    Tamis,
    WireGuard,
}

pub(super) const OVERLAYS: [Overlay; 2] = [Overlay::WireGuard, Overlay::Tamis];

impl Overlay {
    /// Brings the tunnel of a host up. The first one knows where the other is; `keepalive` is in seconds, 0 for none.
    pub(super) fn up(self, hosts: &mut Hosts, side: usize, keepalive: u32) {
        match self {
            Self::Tamis => {
                let place = match side {
                    0 => format!("endpoint = \"{}:{PORT}\"\n", OUTSIDE[1]),
                    _ => String::new(),
                };
                let peer = format!("{place}{}\nkeepalive = {keepalive}", allowed(1 - side));
                hosts.write(side, "", &peer);
                hosts.up(side);
            }
            Self::WireGuard => wireguard(hosts, side, keepalive),
        }
        // What is written into the device is taken up by one processor, so that it stays in order.
        hosts.on_one_processor(side, "tam");
    }

    /// Ends it, as a crash does.
    pub(super) fn crash(self, hosts: &mut Hosts, side: usize) {
        match self {
            Self::Tamis => hosts.kill(side),
            Self::WireGuard => drop(hosts.does(side, "ip", &["link", "del", "tam"])),
        }
    }
}

fn wireguard(hosts: &Hosts, side: usize, keepalive: u32) {
    let does = |program: &str, args: &[&str]| {
        let ran = hosts.does(side, program, args);
        assert_eq!(ran.code, Some(0), "{program} {args:?}: {ran:?}");
    };
    let [own, other] = if side == 0 { ["a.key", "b.key"] } else { ["b.key", "a.key"] };
    does("ip", &["link", "add", "tam", "mtu", "1420", "type", "wireguard"]);
    let (port, own, other) = (PORT.to_string(), hosts.folder.file(own), hosts.public(other));
    let prefixes = format!("{}/32,{}/128", INSIDE[1 - side], INSIDE_V6[1 - side]);
    let place = format!("{}:{PORT}", OUTSIDE[1]);
    let keepalive = keepalive.to_string();
    let mut args = vec!["set", "tam", "listen-port", &port, "private-key", &own, "peer", &other];
    args.extend(["allowed-ips", &prefixes, "persistent-keepalive", &keepalive]);
    if side == 0 {
        args.extend(["endpoint", &place]);
    }
    does("wg", &args);
    does("ip", &["address", "add", &format!("{}/24", INSIDE[side]), "dev", "tam"]);
    does("ip", &["address", "add", &format!("{}/64", INSIDE_V6[side]), "dev", "tam"]);
    does("ip", &["link", "set", "tam", "up"]);
}
