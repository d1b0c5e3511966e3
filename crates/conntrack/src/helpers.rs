//! The helpers at work: which connections they expect from a packet that survived.
//!
//! Source: Linux 6.18 `nf_conntrack_ftp.c`, `nf_conntrack_tftp.c`, and `nf_confirm` of
//! `nf_conntrack_proto.c`, which runs them.

use crate::dissect::{Unparsable, known, segment};
use crate::expect::{Expectation, Followed};
use crate::flow::Flow;
use crate::ftp::text::Form;
use crate::ftp::{Found, KnownStarts};
use crate::helper::Helper;
use crate::index::Handle;
use crate::key::Direction;
use crate::shift::Shifts;
use crate::unmodelled::Payload;
use crate::untraceable::{Pattern, answer, expected_by};
use crate::{dissect, ftp};
use packet::{Packet, tcp, udp};
use std::collections::HashMap;
use std::net::IpAddr;

/// What the helpers remember of flows.
#[derive(Debug, Default)]
pub(crate) struct Helpers {
    /// Where lines begin in FTP control connections.
    lines: HashMap<Handle, KnownStarts>,
    /// How far the sequence numbers of rewritten flows moved.
    shifts: HashMap<Handle, Shifts>,
    /// Of connections that the host opened: the first number that the client was given in the server's place.
    promised: HashMap<Handle, u32>,
}

/// Where a payload names the flow to expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mention {
    /// Offset in the frame.
    pub(crate) start: usize,
    /// In bytes.
    pub(crate) len: usize,
    pub(crate) form: Form,
    /// The segment's sequence number.
    pub(crate) sequence: u32,
}

/// What a helper makes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Help {
    /// The packet goes on.
    Pass,
    /// The packet goes on, and this is expected. FTP states it as text.
    Expect(Expectation, Option<Mention>),
    /// The kernel drops it.
    Drop,
    /// Not all of the payload was captured: it goes on or is dropped, and this may be expected.
    Uncertain([Pattern; 2]),
    /// The packet goes on, and this may be expected.
    Broadcast(Pattern),
    /// What it makes of the packet is not known.
    Unmodelled,
}

impl Helpers {
    /// Runs the helper of a flow over a packet that is about to leave.
    pub(crate) fn help(
        &mut self,
        packet: &Packet<'_>,
        handle: Handle,
        flow: &Flow,
        direction: Direction,
        is_established: bool,
    ) -> Help {
        let Ok(layer) = dissect::layer(packet) else { return Help::Pass };
        let looked = match flow.helper {
            Helper::None => return Help::Pass,
            Helper::Broadcast => return Help::Broadcast(answer(flow)),
            Helper::Ftp if layer.protocol != tcp::PROTOCOL || !is_established => {
                return Help::Pass;
            }
            Helper::Tftp if layer.protocol != udp::PROTOCOL => return Help::Pass,
            Helper::Ftp => self.ftp(packet, layer.offset, handle, flow, direction),
            Helper::Tftp => tftp(packet, layer.offset, handle, flow),
            _ if (Payload { packet, flow, direction, is_established }).may_act() => {
                return Help::Unmodelled;
            }
            _ => return Help::Pass,
        };
        match looked {
            Ok(help) => help,
            Err(Unparsable::Invalid) => Help::Pass,
            Err(Unparsable::Unknown) => {
                let direction =
                    if flow.helper == Helper::Tftp { Direction::Original } else { direction };
                Help::Uncertain(expected_by(flow, direction, layer.protocol))
            }
        }
    }

    fn ftp(
        &mut self,
        packet: &Packet<'_>,
        offset: usize,
        handle: Handle,
        flow: &Flow,
        direction: Direction,
    ) -> Result<Help, Unparsable> {
        let (sequence, payload) = segment(packet, offset)?;
        let payload_start = packet.headers().end.saturating_sub(payload.len());
        let speaker = flow.tuple(direction).source();
        let starts = self.lines.entry(handle).or_default();
        let found = ftp::look(starts, direction, sequence, payload, speaker);
        let data = match found {
            Found::Nothing => return Ok(Help::Pass),
            Found::Partial => return Ok(Help::Drop),
            Found::Data(data) => data,
        };
        if data.address != speaker {
            return Ok(Help::Pass);
        }
        let back = flow.tuple(direction.opposite());
        let expected = Expectation {
            source: back.source(),
            destination: back.destination(),
            destination_port: data.port,
            protocol: tcp::PROTOCOL,
            zone: flow.zone(),
            master: handle,
            direction,
            helper: flow.helper,
            follows: followed(flow, direction, data.port),
        };
        let start = payload_start + data.start;
        Ok(Help::Expect(
            expected,
            Some(Mention { start, len: data.len, form: data.form, sequence }),
        ))
    }

    /// How far the numbers of a flow moved.
    pub(crate) fn shifts(&self, handle: Handle) -> Shifts {
        self.shifts.get(&handle).copied().unwrap_or_default()
    }

    /// A flow goes on whose numbers had moved so far.
    pub(crate) fn resume(&mut self, handle: Handle, shifts: Shifts) {
        self.shifts.insert(handle, shifts);
    }

    /// A segment of a flow, sent with this sequence number, grew by this.
    pub(crate) fn grow(&mut self, handle: Handle, direction: Direction, sequence: u32, by: u32) {
        self.shifts.entry(handle).or_default().grow(direction, sequence, by);
    }

    /// The host opens this flow to a server for a client that it gave this first sequence number.
    pub(crate) fn promise(&mut self, handle: Handle, first: u32) {
        self.promised.insert(handle, first);
        self.shifts.remove(&handle);
    }

    /// Whether the host opened this flow for a client.
    pub(crate) fn is_promised(&self, handle: Handle) -> bool {
        self.promised.contains_key(&handle)
    }

    /// The server of such a flow chose this number: from now on its numbers move. False for any other flow.
    pub(crate) fn keep_promise(&mut self, handle: Handle, chosen: u32) -> bool {
        let Some(promised) = self.promised.get(&handle) else { return false };
        let by = promised.wrapping_sub(chosen);
        self.shifts.insert(handle, Shifts::from_numbers([[0; 3], [chosen, by, by]]));
        true
    }

    /// Where lines begin in a flow's payload is not known any more.
    pub(crate) fn lose_lines(&mut self, handle: Handle) {
        self.lines.entry(handle).or_default().lose_track();
    }

    /// Forgets a flow.
    pub(crate) fn forget(&mut self, handle: Handle) {
        self.lines.remove(&handle);
        self.shifts.remove(&handle);
        self.promised.remove(&handle);
    }
}

/// Whether a segment, wherever its line begins, may be an answer that announces a connection.
pub(crate) fn may_be_ftp_answer(packet: &Packet<'_>, offset: usize, speaker: IpAddr) -> bool {
    match segment(packet, offset) {
        Ok((_, payload)) => ftp::may_expect(Direction::Reply, payload, speaker),
        Err(unparsable) => unparsable == Unparsable::Unknown,
    }
}

/// Whether a datagram may be a read or write request.
pub(crate) fn may_be_tftp_request(packet: &Packet<'_>, offset: usize) -> bool {
    is_tftp_request(packet, offset).unwrap_or_else(|unparsable| unparsable == Unparsable::Unknown)
}

fn is_tftp_request(packet: &Packet<'_>, offset: usize) -> Result<bool, Unparsable> {
    const READ: [u8; 2] = [0, 1];
    const WRITE: [u8; 2] = [0, 2];
    let opcode = known(packet.read::<2>(offset + udp::HEADER_LEN))?;
    Ok(opcode == READ || opcode == WRITE)
}

/// A read or write request: the server answers from another port.
fn tftp(
    packet: &Packet<'_>,
    offset: usize,
    handle: Handle,
    flow: &Flow,
) -> Result<Help, Unparsable> {
    if !is_tftp_request(packet, offset)? {
        return Ok(Help::Pass);
    }
    let back = flow.tuple(Direction::Reply);
    let expected = Expectation {
        source: back.source(),
        destination: back.destination(),
        destination_port: back.destination_part(),
        protocol: udp::PROTOCOL,
        zone: flow.zone(),
        master: handle,
        direction: Direction::Original,
        helper: flow.helper,
        follows: followed(flow, Direction::Original, flow.original.source_part()),
    };
    Ok(Help::Expect(expected, None))
}

/// How the flow is translated that a packet in this direction of its flow announces, where its own is translated: it
/// is sent from where the flow sends to, and to where the speaker is, at this port (`nf_nat_follow_master`).
fn followed(flow: &Flow, direction: Direction, port: u16) -> Option<Followed> {
    let speaks = flow.tuple(direction);
    flow.is_translated().then(|| Followed {
        source: speaks.destination(),
        destination: speaks.source(),
        port,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_kept_of_flows_that_are_gone() {
        let mut helpers = Helpers::default();
        for slot in 0..100 {
            let flow = Handle { slot, generation: 1 };
            helpers.lose_lines(flow);
            helpers.grow(flow, Direction::Original, 1000, 2);
            helpers.forget(flow);
        }
        assert_eq!((helpers.lines.len(), helpers.shifts.len()), (0, 0));
    }
}
