//! [`Masters`]: flows with a helper whose replies cannot be found, because how they are translated is not known.
//! A packet that may be such a reply may announce what the flow's helper would find in it.
//!
//! Contract: bounded; past [`MOST`] a packet that announces anything may announce everything. None is
//! ever forgotten, for nobody knows how long the kernel keeps the flow.
//!
//! Source: Linux 6.18 `nf_conntrack_ftp.c`, `nf_conntrack_tftp.c`: between which hosts what they expect lies.

use crate::dissect;
use crate::flow::Flow;
use crate::helper::Helper;
use crate::helpers::{may_be_ftp_answer, may_be_tftp_request};
use crate::index::Handle;
use crate::key::Tuple;
use crate::untraceable::{Pattern, Untraceable};
use packet::{Packet, tcp, udp};
use std::net::IpAddr;

/// Flows that are remembered one by one.
const MOST: usize = 1 << 12;

#[derive(Debug)]
struct Master {
    handle: Handle,
    helper: Helper,
    protocol: u8,
    client: IpAddr,
    /// What the client takes for the server.
    front: IpAddr,
    /// What replies come from, where that is known.
    server: Option<(IpAddr, u16)>,
}

/// Flows with a helper whose replies cannot be found.
#[derive(Debug, Default)]
pub(crate) struct Masters {
    known: Vec<Master>,
    /// Whether more flows were met than are kept.
    overflowed: bool,
}

impl Masters {
    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Remembers a flow of a helper that looks into replies; the same again as it is now.
    pub(crate) fn add(&mut self, handle: Handle, flow: &Flow) {
        if !matches!(flow.helper, Helper::Ftp | Helper::Tftp) {
            return;
        }
        let [_, is_destination_unknown] = flow.indeterminate_ends;
        let server =
            (!is_destination_unknown).then(|| (flow.reply.source(), flow.reply.source_part()));
        let sent = &flow.original;
        let (client, front, protocol) = (sent.source(), sent.destination(), sent.protocol());
        let master = Master { handle, helper: flow.helper, protocol, client, front, server };
        let has_room = self.known.len() < MOST;
        match self.known.last_mut() {
            Some(last) if last.handle == handle => *last = master,
            _ if has_room => self.known.push(master),
            _ => self.overflowed = true,
        }
    }

    /// Whether a packet with this tuple, which may be a reply to any of them, may announce a flow; what may have
    /// been announced goes to `untraceable`.
    pub(crate) fn may_expect(
        &self,
        packet: &Packet<'_>,
        tuple: &Tuple,
        untraceable: &mut Untraceable,
    ) -> bool {
        let Ok(layer) = dissect::layer(packet) else { return false };
        let protocol = layer.protocol;
        let may_announce = match protocol {
            tcp::PROTOCOL => may_be_ftp_answer(packet, layer.offset, tuple.source()),
            udp::PROTOCOL => may_be_tftp_request(packet, layer.offset),
            _ => false,
        };
        if !may_announce {
            return false;
        }
        let server = (tuple.source(), tuple.source_part());
        let masters = self.known.iter().filter(|master| {
            master.protocol == protocol && master.server.is_none_or(|known| known == server)
        });
        let mut may = self.overflowed;
        for master in masters {
            // What is expected, and replies to it.
            let (client, front) = (master.client, Some(master.front));
            let ends = match master.helper {
                Helper::Ftp => [
                    Pattern::Between(protocol, client, front),
                    Pattern::Between(protocol, tuple.source(), None),
                ],
                _ => [
                    Pattern::Between(protocol, tuple.source(), Some(tuple.destination())),
                    Pattern::Between(protocol, client, front),
                ],
            };
            ends.into_iter().for_each(|pattern| untraceable.may_expect(pattern));
            may = true;
        }
        if self.overflowed {
            untraceable.may_expect(Pattern::Whatever);
        }
        may
    }
}
