//! The helpers at work: what a packet that survived foretells.
//!
//! Source: Linux 6.18 `nf_conntrack_ftp.c`, `nf_conntrack_tftp.c`, and `nf_confirm` of
//! `nf_conntrack_proto.c`, which runs them.

use super::dissect;
use super::expect::{Expectation, Expectations, Followed};
use super::flow::{Flow, Helper};
use super::ftp::{self, Found, LineStarts};
use super::key::Direction;
use super::step::{Flaw, known, rest};
use super::table::Handle;
use packet::{Packet, Read, tcp, udp};
use std::collections::HashMap;
use std::net::IpAddr;

/// What the helpers remember of flows.
#[derive(Debug, Default)]
pub(super) struct Helpers {
    /// Where lines begin in FTP control connections.
    lines: HashMap<Handle, LineStarts>,
}

/// What a helper makes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Help {
    /// The packet goes on.
    Pass,
    /// It goes on, and foretells this.
    Expect(Expectation),
    /// The kernel drops it.
    Drop,
    /// The payload was not captured, or the helper is not modelled: a flow may be foretold.
    Unknown,
}

impl Helpers {
    /// Runs the helper of a flow over a packet that is about to leave.
    pub(super) fn help(
        &mut self,
        packet: &Packet<'_>,
        (handle, flow): (Handle, &Flow),
        direction: Direction,
        is_established: bool,
    ) -> Help {
        let Ok(layer) = dissect::layer(packet) else { return Help::Pass };
        let looked = match flow.helper {
            Helper::None => return Help::Pass,
            Helper::Other => return Help::Unknown,
            Helper::Ftp if layer.protocol != tcp::PROTOCOL || !is_established => {
                return Help::Pass;
            }
            Helper::Tftp if layer.protocol != udp::PROTOCOL => return Help::Pass,
            Helper::Ftp => self.ftp(packet, layer.offset, (handle, flow), direction),
            Helper::Tftp => tftp(packet, layer.offset, (handle, flow)),
        };
        match looked {
            Ok(help) => help,
            Err(Flaw::Invalid) => Help::Pass,
            Err(Flaw::Unknown) => Help::Unknown,
        }
    }

    fn ftp(
        &mut self,
        packet: &Packet<'_>,
        offset: usize,
        (handle, flow): (Handle, &Flow),
        direction: Direction,
    ) -> Result<Help, Flaw> {
        let header = known(packet.read::<{ tcp::MIN_HEADER_LEN }>(offset))?;
        let Some(header) = tcp::Header::new_checked(&header) else { return Ok(Help::Pass) };
        let payload = match rest(packet, offset + header.header_len()) {
            Read::Known(payload) => payload,
            Read::Absent => return Ok(Help::Pass),
            Read::Unknown => return Err(Flaw::Unknown),
        };
        let speaker = flow.tuple(direction).source();
        let starts = self.lines.entry(handle).or_default();
        let found = ftp::look(starts, direction, header.sequence(), payload, speaker);
        let (address, port) = match found {
            Found::Nothing => return Ok(Help::Pass),
            Found::Partial => return Ok(Help::Drop),
            Found::Data(address, port) => (address, port),
        };
        if address != speaker {
            return Ok(Help::Pass);
        }
        let back = flow.tuple(direction.opposite());
        let ends = (back.source(), back.destination(), port);
        Ok(Help::Expect(expectation(handle, (flow, direction), ends, (tcp::PROTOCOL, port))))
    }

    /// Where lines begin in a flow's payload is not known any more.
    pub(super) fn lose_lines(&mut self, handle: Handle) {
        self.lines.entry(handle).or_default().lose();
    }

    /// Forgets a flow.
    pub(super) fn forget(&mut self, handle: Handle) {
        self.lines.remove(&handle);
    }
}

/// A read or write request: the server answers from another port.
fn tftp(packet: &Packet<'_>, offset: usize, (handle, flow): (Handle, &Flow)) -> Result<Help, Flaw> {
    const READ: [u8; 2] = [0, 1];
    const WRITE: [u8; 2] = [0, 2];
    let opcode = known(packet.read::<2>(offset + udp::HEADER_LEN))?;
    if opcode != READ && opcode != WRITE {
        return Ok(Help::Pass);
    }
    let back = flow.tuple(Direction::Reply);
    let ends = (back.source(), back.destination(), back.destination_part());
    let own = flow.original.source_part();
    Ok(Help::Expect(expectation(handle, (flow, Direction::Original), ends, (udp::PROTOCOL, own))))
}

/// What a packet that goes this way of its flow foretells. Where the flow is translated, so is the one to come:
/// it is sent from where the flow sends to, and to where the speaker is, at this port (`nf_nat_follow_master`).
fn expectation(
    master: Handle,
    (flow, direction): (&Flow, Direction),
    (source, destination, destination_port): (IpAddr, IpAddr, u16),
    (protocol, port): (u8, u16),
) -> Expectation {
    let speaks = flow.tuple(direction);
    let follows = flow.is_translated().then(|| Followed {
        source: speaks.destination(),
        destination: speaks.source(),
        port,
    });
    Expectation {
        source,
        destination,
        destination_port,
        protocol,
        zone: flow.zone(),
        master,
        helper: flow.helper,
        follows,
    }
}

impl Helpers {
    /// Takes over what a packet foretells; false where the kernel drops it because that clashes.
    pub(super) fn expect(
        expectations: &mut Expectations,
        flow: &mut Flow,
        expectation: Expectation,
        now: u64,
    ) -> bool {
        let added = expectations.add(expectation, now);
        if added {
            flow.expecting = 1;
        }
        added
    }
}
