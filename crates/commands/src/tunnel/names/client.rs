//! [`ask`]: a question to this node's own server of names, as programs of the host ask it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use overlay::limits::{PATIENCE, SECOND};
use simple_dns::rdata::{OPT, RData};
use simple_dns::{CLASS, Name, Packet, Question, RCODE, TYPE};

use super::dns::{LONGEST, PORT, reason};

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Told {
    /// The node's IPv4 address.
    Address(Ipv4Addr),
    /// The name of an address.
    Name(String),
    /// There is no such name, or none that this node may reach.
    NoSuchName,
    /// There is no way to it now, and why.
    Failure(String),
}

/// Asks the node that has this address for the address of a name.
pub(in super::super) fn address(own: Ipv4Addr, name: &str) -> Option<Told> {
    ask(own, name, TYPE::A)
}

/// Asks the node that has this address for its own name, with the domain.
pub(in super::super) fn own_name(own: Ipv4Addr) -> Option<Told> {
    let [a, b, c, d] = own.octets();
    ask(own, &format!("{d}.{c}.{b}.{a}.in-addr.arpa"), TYPE::PTR)
}

/// Asks; nothing if nobody answers.
fn ask(own: Ipv4Addr, name: &str, kind: TYPE) -> Option<Told> {
    let mut packet = Packet::new_query(1);
    let name = Name::new(name).ok()?;
    packet.questions.push(Question::new(name, kind.into(), CLASS::IN.into(), false));
    *packet.opt_mut() =
        Some(OPT { opt_codes: Vec::new(), udp_packet_size: LONGEST as u16, version: 0 });
    let query = packet.build_bytes_vec_compressed().ok()?;
    // Only this host is answered, and it is known by its address.
    let socket = UdpSocket::bind((own, 0)).ok()?;
    socket.connect(SocketAddr::new(IpAddr::V4(own), PORT)).ok()?;
    socket.set_read_timeout(Some(Duration::from_nanos(PATIENCE + SECOND))).ok()?;
    socket.send(&query).ok()?;
    let mut answer = [0; 2 * LONGEST];
    let length = socket.recv(&mut answer).ok()?;
    told(&answer[..length])
}

fn told(answer: &[u8]) -> Option<Told> {
    let packet = Packet::parse(answer).ok()?;
    let data = packet.answers.first().map(|answer| &answer.rdata);
    match (packet.rcode(), data) {
        (RCODE::NoError, Some(RData::A(address))) => Some(Told::Address(address.address.into())),
        (RCODE::NoError, Some(RData::PTR(name))) => Some(Told::Name(name.0.to_string())),
        (RCODE::NameError, _) => Some(Told::NoSuchName),
        _ => {
            Some(Told::Failure(reason(&packet).unwrap_or_else(|| "it is not said why".to_owned())))
        }
    }
}
