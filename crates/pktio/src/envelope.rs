//! [`Envelope`]: the part of a port's work that is done between receiving and transmitting: frames of a tunnel are opened
//! after they were received, and sealed before they are transmitted.
//!
//! | | any worker, bursts side by side | one worker at a time, bursts in order |
//! |---|---|---|
//! | opening | [`Envelope::decipher`] | [`Envelope::release`] |
//! | sealing | [`Envelope::seal`] | [`Envelope::place`], before |
//!
//! Contract: what [`Port::rx_burst`](crate::Port::rx_burst) of such a port hands over is [`LinkType::SEALED`] and says
//! nothing to anybody but its envelope; what [`Port::tx_burst`](crate::Port::tx_burst) takes is sealed as well. A
//! worker has an envelope of its own ([`Port::envelope`](crate::Port::envelope)); envelopes of one port continue each
//! other's work, on a burst with its [`Notes`]. The steps in order are short, and the others are where the time goes.
//!
//! [`LinkType::SEALED`]: crate::LinkType::SEALED

use std::any::Any;
use std::fmt;

use crate::burst::Burst;
use crate::frame::Frame;

/// Opens and seals the frames of a port.
pub trait Envelope: Send {
    /// Deciphers the frames of a burst where they lie. `lose` gets every invalid frame, with the reason.
    fn decipher(
        &mut self,
        burst: &mut Burst,
        notes: &mut Notes,
        lose: &mut dyn FnMut(Lost, Frame<'_>),
    );

    /// Replaces the deciphered frames of a burst with what they hold, in order. Frames that hold nothing for anybody else
    /// disappear silently; `lose` gets what may not be delivered, with the reason.
    fn release(
        &mut self,
        burst: &mut Burst,
        notes: &mut Notes,
        lose: &mut dyn FnMut(Lost, Frame<'_>),
    );

    /// Gives the frames of a burst their places among all that are sealed, except frames that are sealed already. Returns how many
    /// left the burst for later: they wait in the port until their peer can be reached.
    fn place(
        &mut self,
        burst: &mut Burst,
        notes: &mut Notes,
        lose: &mut dyn FnMut(Lost, Frame<'_>),
    ) -> usize;

    /// Makes frames that have their places what the port transmits.
    fn seal(&mut self, burst: &mut Burst, notes: &mut Notes, lose: &mut dyn FnMut(Lost, Frame<'_>));

    /// Opens a burst by one worker: deciphers and releases it.
    fn open(
        &mut self,
        burst: &mut Burst,
        notes: &mut Notes,
        lose: &mut dyn FnMut(Lost, Frame<'_>),
    ) {
        self.decipher(burst, notes, lose);
        self.release(burst, notes, lose);
    }

    /// Closes a burst by one worker: places and seals it. Returns how many frames wait, as [`Envelope::place`].
    fn close(
        &mut self,
        burst: &mut Burst,
        notes: &mut Notes,
        lose: &mut dyn FnMut(Lost, Frame<'_>),
    ) -> usize {
        let waiting = self.place(burst, notes, lose);
        self.seal(burst, notes, lose);
        waiting
    }
}

/// What envelopes note about the frames of a burst between two steps: it belongs to the burst, and is used again for the
/// next one.
#[derive(Default)]
pub struct Notes(Option<Box<dyn Any + Send>>);

impl Notes {
    /// The notes, as the envelope's own type; new ones if there are none, or another envelope's.
    pub fn of<N: Default + Send + 'static>(&mut self) -> &mut N {
        let is_own = self.0.as_ref().is_some_and(|notes| notes.is::<N>());
        if !is_own {
            self.0 = None;
        }
        let notes = self.0.get_or_insert_with(|| Box::<N>::default());
        notes.downcast_mut().unwrap_or_else(|| unreachable!("they were made here"))
    }
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Notes").field(&self.0.is_some()).finish()
    }
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
