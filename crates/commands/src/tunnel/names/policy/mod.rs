//! [`Policed`]: the network's policy as rules of the tunnel's own table `security`, which every packet passes after the rules
//! of its configuration.
//!
//! ```text
//! *security
//! -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
//! -A FORWARD -j peers
//! -A FORWARD -s 10.99.0.1/32 -i tamis0 … -j ACCEPT           peers of the configuration are its owner's to judge
//! -A FORWARD … -j DROP
//! -A peers -s 10.99.0.3/32 -j peer-10.99.0.3                 and with -d
//! -A peer-10.99.0.3 -s 10.99.0.3/32 -d 10.99.0.2/32 -p tcp … --comment "policy 7: mobile -> nas tcp/22" … -j ACCEPT
//! -A peer-10.99.0.3 … --comment "policy 7: no line for phone and nas" -j DROP
//! ```
//!
//! Contract: what no line lets begin is dropped, by who sends it and by who receives it; so is what comes while a peer's rules are
//! not there. A peer that comes, changes or goes costs its own rules. What it may begin no longer ends at once: connections go
//! that no line would let begin now.

use std::collections::HashMap;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use live::answers::{self, Conntrack};
use live::config::OwnTable;
use live::config::tunnel::{HOST, TunnelSettings};
use live::{FlowWords, Request, Running};
use overlay::{Claims, Name, Permit, Permits, Protocol, Service};
use rules::model::Family;
use serde_json::Value;

/// The table.
const TABLE: &str = "security";

/// What the comment of a rule begins with that is the policy's: the version follows.
pub(in super::super) const COMMENT: &str = "policy ";

/// Connections that are looked at in a turn.
const AT_ONCE: usize = 1_024;

/// The tables that a node's tunnel begins with: no peer may begin anything.
pub(in super::super) fn tables(tunnel: &TunnelSettings) -> Vec<OwnTable> {
    if tunnel.cloud.is_none() {
        return Vec::new();
    }
    let table = |family| OwnTable { family, name: TABLE, text: table(tunnel, family) };
    [Family::Ipv4, Family::Ipv6].map(table).into()
}

fn table(tunnel: &TunnelSettings, family: Family) -> String {
    let name = &tunnel.name;
    let mut text = format!(
        "*{TABLE}\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:peers - [0:0]\n\
         -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n-A FORWARD -j peers\n"
    );
    let prefixes = tunnel.peers.iter().flat_map(|peer| &peer.allowed);
    let is_v6 = family == Family::Ipv6;
    for prefix in prefixes.filter(|prefix| prefix.to_string().contains(':') == is_v6) {
        let comment = "-m comment --comment \"a [[peer]] of the configuration\"";
        add(
            &mut text,
            format_args!("-A FORWARD -s {prefix} -i {name} -o {HOST} {comment} -j ACCEPT"),
        );
        add(
            &mut text,
            format_args!("-A FORWARD -d {prefix} -i {HOST} -o {name} {comment} -j ACCEPT"),
        );
    }
    let comment = "the policy: no node that this one has a way to";
    add(&mut text, format_args!("-A FORWARD -m comment --comment \"{comment}\" -j DROP\nCOMMIT"));
    text
}

fn add(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Nothing refuses to be written to a text.
    let _ = writeln!(text, "{line}");
}

/// The peers that the policy's rules are about.
pub(super) struct Policed {
    own: Name,
    /// The node's own addresses.
    addresses: (Option<Ipv4Addr>, Option<Ipv6Addr>),
    peers: HashMap<Name, Peer>,
}

/// A peer, and what it may begin.
struct Peer {
    addresses: (Ipv4Addr, Ipv6Addr),
    lines: Vec<Permit>,
}

impl Policed {
    pub(super) fn new(own: Name, addresses: &[(IpAddr, u8)]) -> Self {
        let v4 = addresses.iter().find_map(|(address, _)| match address {
            IpAddr::V4(address) => Some(*address),
            IpAddr::V6(_) => None,
        });
        let v6 = addresses.iter().find_map(|(address, _)| match address {
            IpAddr::V6(address) => Some(*address),
            IpAddr::V4(_) => None,
        });
        Self { own, addresses: (v4, v6), peers: HashMap::new() }
    }

    /// Holds a peer, and this host, to what the policy lets the two begin.
    ///
    /// # Errors
    /// The rules are refused, and why; then the peer may begin nothing.
    pub(super) fn hold(
        &mut self,
        claims: &Claims,
        permits: &Permits,
        run: &Running,
    ) -> Result<(), String> {
        self.clear(claims, run);
        let known = self.peers.get(&claims.name);
        let texts = self.texts(claims, permits, known.is_none());
        if let Err(what) = run.change_own(&texts) {
            self.peers.remove(&claims.name);
            take_away((claims.v4, claims.v6), run);
            return Err(what);
        }
        let lines = permits.lines.clone();
        let addresses = (claims.v4, claims.v6);
        let before = self.peers.insert(claims.name.clone(), Peer { addresses, lines });
        if before.is_some_and(|before| before.lines != permits.lines) {
            end_connections(addresses, permits, run);
        }
        Ok(())
    }

    /// Lets a peer begin nothing any more.
    pub(super) fn forget(&mut self, name: &Name, run: &Running) {
        if let Some(peer) = self.peers.remove(name) {
            take_away(peer.addresses, run);
            end_connections(peer.addresses, &Permits::default(), run);
        }
    }

    /// Makes room for a peer: its name may have had other addresses, and its addresses another name.
    fn clear(&mut self, claims: &Claims, run: &Running) {
        let is_in_the_way = |(name, peer): (&Name, &Peer)| {
            let (v4, v6) = peer.addresses;
            let is_same = (v4, v6) == (claims.v4, claims.v6) && *name == claims.name;
            let is_other = *name != claims.name && v4 != claims.v4 && v6 != claims.v6;
            (!is_same && !is_other).then(|| name.clone())
        };
        let names: Vec<Name> = self.peers.iter().filter_map(is_in_the_way).collect();
        for name in names {
            self.forget(&name, run);
        }
    }

    /// The changes that make a peer's rules.
    fn texts(&self, claims: &Claims, permits: &Permits, is_new: bool) -> [(Family, String); 2] {
        let (v4, v6) = self.addresses;
        let chain = Chain {
            name: chain(claims.v4),
            who: format!("{} and {}", claims.name, self.own),
            permits,
            is_new,
        };
        let own = (v4.map(IpAddr::V4), v6.map(IpAddr::V6));
        [
            (Family::Ipv4, chain.text(claims.v4.into(), own.0)),
            (Family::Ipv6, chain.text(claims.v6.into(), own.1)),
        ]
    }
}

/// The name of a peer's chain, also in the other family.
pub(in super::super) fn chain(address: Ipv4Addr) -> String {
    format!("peer-{address}")
}

/// Takes a peer's rules away, as far as they are there: the tunnel has no such peer any more.
fn take_away(addresses: (Ipv4Addr, Ipv6Addr), run: &Running) {
    for change in gone(addresses) {
        let _ = run.change_own(&[change]);
    }
}

/// The changes that take a peer's rules away.
fn gone((v4, v6): (Ipv4Addr, Ipv6Addr)) -> [(Family, String); 2] {
    let name = chain(v4);
    let text = |address: IpAddr| {
        let address = whole(address);
        format!(
            "*{TABLE}\n-D peers -s {address} -j {name}\n-D peers -d {address} -j {name}\n\
             -F {name}\n-X {name}\nCOMMIT\n"
        )
    };
    [(Family::Ipv4, text(v4.into())), (Family::Ipv6, text(v6.into()))]
}

fn whole(address: IpAddr) -> String {
    format!("{address}/{}", if address.is_ipv4() { 32 } else { 128 })
}

/// The rules about a peer.
struct Chain<'p> {
    name: String,
    /// Both nodes.
    who: String,
    permits: &'p Permits,
    is_new: bool,
}

impl Chain<'_> {
    /// The changes that make them of the peer's address and this node's own one of the family.
    fn text(&self, peer: IpAddr, own: Option<IpAddr>) -> String {
        let (name, peer, version) = (&self.name, whole(peer), self.permits.version);
        // The chain is made, or emptied.
        let mut text = format!("*{TABLE}\n:{name} - [0:0]\n");
        for line in &self.permits.lines {
            let Some(own) = own else { break };
            let comment = format!("-m comment --comment \"{COMMENT}{version}: {}\"", line.text);
            let inward = line.inward.then(|| format!("-s {peer} -d {}", whole(own)));
            let outward = line.outward.then(|| format!("-d {peer}"));
            for way in inward.into_iter().chain(outward) {
                for test in tests(&line.services, own.is_ipv4()) {
                    add(&mut text, format_args!("-A {name} {way} {test}{comment} -j ACCEPT"));
                }
            }
        }
        let comment = format!("{COMMENT}{version}: no line for {}", self.who);
        add(&mut text, format_args!("-A {name} -m comment --comment \"{comment}\" -j DROP"));
        if self.is_new {
            add(&mut text, format_args!("-A peers -s {peer} -j {name}"));
            add(&mut text, format_args!("-A peers -d {peer} -j {name}"));
        }
        text + "COMMIT\n"
    }
}

/// Tests that packets of services pass, each with a blank after it.
fn tests(services: &[Service], is_v4: bool) -> Vec<String> {
    if services.is_empty() {
        return vec![String::new()];
    }
    let test = |service: &Service| {
        let (first, last) = service.ports;
        let protocol = match service.protocol {
            Protocol::Icmp if is_v4 => return "-p icmp ".to_owned(),
            Protocol::Icmp => return "-p ipv6-icmp ".to_owned(),
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        };
        match service.is_whole() {
            true => format!("-p {protocol} "),
            false if first == last => format!("-p {protocol} -m {protocol} --dport {first} "),
            false => format!("-p {protocol} -m {protocol} --dport {first}:{last} "),
        }
    };
    services.iter().map(test).collect()
}

/// Ends connections with a peer that no line would let begin now; the others go on.
fn end_connections((v4, v6): (Ipv4Addr, Ipv6Addr), permits: &Permits, run: &Running) {
    for address in [IpAddr::V4(v4), v6.into()] {
        let address = Some(address.to_string());
        let inward = FlowWords { src: address.clone(), ..FlowWords::default() };
        let outward = FlowWords { dst: address, ..FlowWords::default() };
        for (flows, is_inward) in [(inward, true), (outward, false)] {
            end_denied(&flows, is_inward, permits, run);
        }
    }
}

fn end_denied(flows: &FlowWords, inward: bool, permits: &Permits, run: &Running) {
    let mut from = None;
    loop {
        let list = Request::ConntrackList { flows: flows.clone(), from, most: AT_ONCE };
        let answer = request(run, &list);
        // A run that does not answer now has its connections time out.
        let Ok(Conntrack { flows: found, next, .. }) = answers::read(answer) else { return };
        for flow in found {
            let side = &flow.original;
            let port = side.dport.unwrap_or_default();
            if lets(permits, inward, flow.protocol, port) {
                continue;
            }
            let flows = FlowWords {
                protocol: Some(flow.protocol.to_string()),
                src: Some(side.src.clone()),
                dst: Some(side.dst.clone()),
                sport: side.sport,
                dport: side.dport,
                ..FlowWords::default()
            };
            end(flows, run);
        }
        match next {
            None => return,
            next => from = next,
        }
    }
}

/// Whether something by a protocol of this number may begin.
fn lets(permits: &Permits, inward: bool, protocol: u8, port: u16) -> bool {
    match protocol {
        6 => permits.permits(inward, Protocol::Tcp, port),
        17 => permits.permits(inward, Protocol::Udp, port),
        1 | 58 => permits.permits(inward, Protocol::Icmp, 0),
        _ => {
            let mut ways = permits.lines.iter().filter(|line| line.services.is_empty());
            ways.any(|line| if inward { line.inward } else { line.outward })
        }
    }
}

fn end(flows: FlowWords, run: &Running) {
    let mut from = None;
    loop {
        let delete = Request::ConntrackDelete { flows: flows.clone(), from };
        let answer = request(run, &delete);
        let Ok(answers::ConntrackEnded { next: Some(next), .. }) = answers::read(answer) else {
            return;
        };
        from = Some(next);
    }
}

/// Asks the run, as a client of its control socket does.
fn request(run: &Running, request: &Request) -> Value {
    let line = serde_json::to_string(request).unwrap_or_default();
    run.answer(&line)
}

#[cfg(test)]
mod tests;
