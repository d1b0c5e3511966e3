//! [`Star`]: the study's network: a responder, and initiators behind a router that translates their addresses and ports.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::process::Command;

use super::{Host, Namespace, Overlay, PORT, UNDER, inner, link};
use crate::bench::tunnel::group::Group;
use crate::bench::tunnel::overlay::Peer;
use crate::oracle::netns::{feed, write_setting};

const RESPONDER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const ROUTER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 254);
/// The router's device towards the responder.
const OUT: &str = "out";
/// Memory of the responder where it is as in the study.
const MEMORY: u64 = 1 << 30;
/// The study's link: its rate, the most that goes at once, and what waits at most, 4 ms.
const LINK: &str = "tbf rate 1gbit burst 128kb limit 512kb";

/// All hosts, running.
pub(in crate::bench::tunnel) struct Star {
    pub(in crate::bench::tunnel) responder: Host,
    pub(in crate::bench::tunnel) initiators: Vec<Host>,
    /// Where initiators come from, as the responder sees it.
    router: Namespace,
    /// What the responder's programs share: after them, as it goes with the last of them.
    pub(in crate::bench::tunnel) group: Option<Group>,
}

impl Star {
    /// All ends up, and packets going from each initiator; the responder's link and memory may be the study's.
    pub(in crate::bench::tunnel) fn new(
        overlay: &dyn Overlay,
        initiators: u8,
        as_study: bool,
    ) -> io::Result<Self> {
        let (router, mut place) = (Namespace::new()?, Namespace::new()?);
        let group = as_study.then(|| Group::new(MEMORY)).transpose()?;
        if let Some(group) = &group {
            place.join(group.door());
        }
        let responder = Host::new(place, inner(254), PORT, format!("dev {UNDER}"))?;
        let (one, other) = (format!("{RESPONDER}/24"), format!("{ROUTER}/24"));
        link((&responder.place, UNDER, &one), (&router, OUT, &other))?;
        if as_study {
            router.run(|| pace(OUT))?;
            responder.place.run(|| pace(UNDER))?;
        }
        router.run(translate)?;
        // Only without an overlay: who has one never asks the router for it.
        router.ip(&format!("route add {}/32 via {RESPONDER}\n", responder.end.address))?;
        let mut star = Self { responder, initiators: Vec::new(), router, group };
        for number in 1..=initiators {
            let host = star.initiator(number)?;
            star.initiators.push(host);
        }
        star.start(overlay)?;
        Ok(star)
    }

    /// A host behind the router, and the responder's peer.
    fn initiator(&mut self, number: u8) -> io::Result<Host> {
        let (own, gateway) = (format!("10.2.{number}.1/24"), format!("10.2.{number}.254"));
        let way = format!("via {gateway} dev {UNDER}");
        let mut host = Host::new(Namespace::new()?, inner(number), 0, way.clone())?;
        let (device, address) = (format!("in{number}"), format!("{gateway}/24"));
        link((&host.place, UNDER, &own), (&self.router, &device, &address))?;
        host.place.ip(&format!("route add 192.0.2.0/24 {way}\n"))?;
        let endpoint = SocketAddr::V4(SocketAddrV4::new(RESPONDER, PORT));
        let peer = |of: &Host, endpoint| Peer {
            key: of.end.key.public(),
            endpoint,
            address: of.end.address,
            keepalive: 0,
        };
        self.responder.end.peers.push(peer(&host, None));
        host.end.peers = vec![peer(&self.responder, Some(endpoint))];
        Ok(host)
    }

    fn start(&mut self, overlay: &dyn Overlay) -> io::Result<()> {
        self.responder.start(overlay)?;
        for host in &mut self.initiators {
            host.start(overlay)?;
            host.reach(self.responder.end.address)?;
        }
        Ok(())
    }

    /// Has all initiators end, and the responder forget them.
    pub(in crate::bench::tunnel) fn leave(&mut self, overlay: &dyn Overlay) -> io::Result<()> {
        for host in &mut self.initiators {
            host.stop();
            overlay.forget(self.responder.daemon()?, &host.end.key.public())?;
        }
        Ok(())
    }
}

/// Has a device send no faster than the study's link.
fn pace(device: &str) -> io::Result<()> {
    feed(Command::new("tc").args(["-batch", "-"]), &format!("qdisc add dev {device} root {LINK}\n"))
}

/// Has the namespace forward, and give what leaves towards the responder the router's own address.
fn translate() -> io::Result<()> {
    write_setting("ipv4/ip_forward", "1")?;
    let rules = format!(
        "table ip napt {{\nchain postrouting {{\n\
        type nat hook postrouting priority srcnat\noifname \"{OUT}\" masquerade\n}}\n}}\n"
    );
    feed(Command::new("nft").args(["-f", "-"]), &rules)
}
