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
    /// Puts what the frames of a burst hold in their place, in their order. Frames that hold nothing for anybody else
    /// go without a word; `lose` is told of those that are not what they should be.
    fn open(&mut self, burst: &mut Burst, lose: &mut dyn FnMut(Lost, Frame<'_>));

    /// Makes frames what the port transmits, but for those that are already. Returns how many left the burst for later:
    /// they wait in the port until their peer can be reached.
    fn seal(&mut self, burst: &mut Burst, lose: &mut dyn FnMut(Lost, Frame<'_>)) -> usize;
}

/// Why a frame is not opened or sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lost {
    /// It is no IP packet, or none as its header says.
    NotIp,
    /// Its destination is no peer's.
    NoPeer,
    /// Its peer has no session, or is not known where, and too many wait already.
    NoSession,
    /// It is longer than what the way to its peer takes.
    TooLong {
        /// Bytes of the longest packet that it takes.
        most: u16,
    },
    /// It names no session that there is.
    Unknown,
    /// It is not genuine.
    Forged,
    /// It was seen before, or is too old to tell.
    Replayed,
    /// Its source is none of its peer's.
    Source,
    /// It met congestion, of which its packet cannot be told (RFC 6040).
    Congestion,
    /// There is no memory for it.
    NoRoom,
}
