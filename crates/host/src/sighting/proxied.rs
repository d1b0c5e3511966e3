//! [`Proxied`]: connections that the host opened in the place of a client (`-j SYNPROXY`), whose numbers it moves.
//!
//! The client was given a first sequence number; the SYN that the host sends to the server has it as acknowledgement
//! number, and the server's answer has the number that it chose. From then on what the server sends leaves with the
//! client's numbers, and what the client acknowledges with the server's. Frames are compared by the server's.
//!
//! Source: Linux 6.18 `nf_synproxy_core.c`, `nf_conntrack_seqadj.c`.

use std::collections::HashMap;

use super::frame::{Ends, Way};
use super::print::{Print, Segment};
use super::table::clear_full;

/// A connection of which the host sent the SYN.
#[derive(Debug, Clone, Copy)]
struct Opened {
    /// The number that the client was given.
    given: u32,
    /// How much the client's numbers are ahead of the server's, once it has answered.
    ahead: Option<u32>,
}

/// The connections, by their ends as the client names them.
#[derive(Debug, Default)]
pub(super) struct Proxied(HashMap<Ends, Opened>);

impl Proxied {
    /// A segment with the server's numbers.
    pub(super) fn unmoved(&self, ends: &Ends, segment: Segment, way: Way) -> Segment {
        if self.0.is_empty() {
            return segment;
        }
        let ahead = |ends: &Ends| self.0.get(ends).and_then(|opened| opened.ahead);
        match (ahead(ends), ahead(&ends.turned())) {
            (Some(by), _) if way != Way::Out => {
                let acknowledgement = segment.acknowledgement.wrapping_sub(by);
                Segment { acknowledgement, ..segment }
            }
            (_, Some(by)) if way == Way::Out => {
                Segment { sequence: segment.sequence.wrapping_sub(by), ..segment }
            }
            _ => segment,
        }
    }

    /// Takes in a frame that no other one shows.
    pub(super) fn see(&mut self, print: &Print, way: Way) {
        let (Some(answers), Some(segment)) = (print.opens, print.segment) else { return };
        match (answers, way) {
            (false, Way::Out) if segment.acknowledgement != 0 => {
                clear_full(&mut self.0);
                self.0.insert(print.ends, Opened { given: segment.acknowledgement, ahead: None });
            }
            (true, Way::In) => {
                if let Some(opened) = self.0.get_mut(&print.ends.turned()) {
                    opened.ahead = Some(opened.given.wrapping_sub(segment.sequence));
                }
            }
            _ => {}
        }
    }
}
