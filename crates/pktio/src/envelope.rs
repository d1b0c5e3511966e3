//! [`Envelope`]: the part of a port's work that any thread may do, in any order: frames of a tunnel are opened after they
//! were received, and sealed before they are transmitted.
//!
//! Contract: what [`Port::rx_burst`](crate::Port::rx_burst) of such a port hands over is [`LinkType::SEALED`] and says
//! nothing to anybody but its envelope; what [`Port::tx_burst`](crate::Port::tx_burst) takes is sealed as well. A
//! worker has an envelope of its own ([`Port::envelope`](crate::Port::envelope)) and uses it between the two, so bursts
//! are opened and sealed side by side while receiving and transmitting keep their order.

use crate::burst::Burst;
use crate::frame::Frame;

/// Opens and seals the frames of a port.
pub trait Envelope: Send {
    /// Replaces the frames of a burst with what they hold, in order. Frames that hold nothing for anybody else
    /// disappear silently; `lose` gets every invalid frame, with the reason.
    fn open(&mut self, burst: &mut Burst, lose: &mut dyn FnMut(Lost, Frame<'_>));

    /// Makes frames what the port transmits, except those that already are. Returns how many left the burst for later:
    /// they wait in the port until their peer can be reached.
    fn seal(&mut self, burst: &mut Burst, lose: &mut dyn FnMut(Lost, Frame<'_>)) -> usize;
}

/// Why a frame is not opened or sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lost {
    /// The frame is no IP packet, or none as its header says.
    NotIp,
    /// The destination belongs to no peer.
    NoPeer,
    /// The peer has no session, or its endpoint is unknown, and too many frames wait already.
    NoSession,
    /// The frame is longer than what the way to its peer takes.
    TooLong {
        /// Bytes of the longest packet that the way takes.
        most: u16,
    },
    /// The frame names no known session.
    Unknown,
    /// The frame is not genuine.
    Forged,
    /// The frame was seen before, or is too old to tell.
    Replayed,
    /// The source does not belong to the peer.
    Source,
    /// The frame met congestion, which its packet cannot carry on (RFC 6040).
    Congestion,
    /// No memory is left for the frame.
    NoRoom,
}
