//! What workers do: seal and open one datagram where it lies. A job is staged by the tunnel's owner, who also gives
//! it its number; it holds its keys, so any thread may carry it out, in any order, without a lock.
//!
//! A [`Sealing`] is used up by [`Sealing::seal`], whether that succeeds or not, and nothing makes a second one with
//! its counter: a nonce is used once.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::sync::Arc;

use crate::aead::TAG;
use crate::entropy::NoEntropy;
use crate::inner::padded;
use crate::message::{DATA_HEADER, Malformed, data_header};
use crate::peer::PeerId;
use crate::session::Keys;

/// Bytes that have to be free before an inner packet that is sealed.
pub const HEADROOM: usize = DATA_HEADER;
/// Bytes that have to be free after it: padding and the tag.
pub const TAILROOM: usize = 15 + TAG;

/// An inner packet's place in a session. Its order is that of staging.
#[must_use]
pub struct Sealing {
    pub(crate) keys: Arc<Keys>,
    pub(crate) receiver: u32,
    pub(crate) counter: u64,
    pub(crate) mtu: usize,
    pub(crate) peer: PeerId,
    pub(crate) to: SocketAddr,
}

/// What was not sealed, and is lost: its counter is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealError {
    /// There are fewer than [`HEADROOM`] bytes before the packet, or it lies outside the buffer.
    Headroom,
    /// There are too few bytes after it; these are enough.
    Tailroom {
        /// With padding and tag.
        needed: usize,
    },
    /// The cipher refused.
    Cipher,
    /// There is no place left in the run.
    Spent,
}

impl Sealing {
    /// Returns the peer that the datagram is for.
    #[must_use]
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// Where it goes.
    #[must_use]
    pub fn to(&self) -> SocketAddr {
        self.to
    }

    /// Returns the datagram's number in its session.
    #[must_use]
    pub fn counter(&self) -> u64 {
        self.counter
    }

    /// Seals what lies at `inner`, an IP packet, and says where the datagram lies then.
    ///
    /// # Errors
    /// [`SealError`], and the counter is spent.
    pub fn seal(self, buffer: &mut [u8], inner: Range<usize>) -> Result<Range<usize>, SealError> {
        seal(&self.keys, (self.receiver, self.counter), self.mtu, buffer, inner)
    }
}

/// Places in a row of one session, for the pieces of one packet: sealed one after the other, by one thread.
#[must_use]
pub struct SealingRun {
    pub(crate) keys: Arc<Keys>,
    pub(crate) receiver: u32,
    /// The next one …
    pub(crate) counter: u64,
    /// … and how many there are.
    pub(crate) left: u64,
    pub(crate) mtu: usize,
    pub(crate) peer: PeerId,
    pub(crate) to: SocketAddr,
}

impl SealingRun {
    /// Returns the peer that the datagrams are for.
    #[must_use]
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// Where they go.
    #[must_use]
    pub fn to(&self) -> SocketAddr {
        self.to
    }

    /// Returns the run for a path whose longest packet has `most` bytes: padding does not go beyond that.
    pub fn within(self, most: u16) -> Self {
        Self { mtu: self.mtu.min(most.into()), ..self }
    }

    /// Seals the IP packet at `inner` with the next counter, and says where the datagram lies then.
    ///
    /// # Errors
    /// [`SealError`], and the counter is spent.
    pub fn seal(
        &mut self,
        buffer: &mut [u8],
        inner: Range<usize>,
    ) -> Result<Range<usize>, SealError> {
        self.left = self.left.checked_sub(1).ok_or(SealError::Spent)?;
        let counter = self.counter;
        self.counter += 1;
        seal(&self.keys, (self.receiver, counter), self.mtu, buffer, inner)
    }
}

fn seal(
    keys: &Keys,
    (receiver, counter): (u32, u64),
    mtu: usize,
    buffer: &mut [u8],
    inner: Range<usize>,
) -> Result<Range<usize>, SealError> {
    let start = inner.start.checked_sub(HEADROOM).ok_or(SealError::Headroom)?;
    let len = inner.end.checked_sub(inner.start).ok_or(SealError::Headroom)?;
    let sealed = padded(len, mtu);
    let end = inner.start.saturating_add(sealed).saturating_add(TAG);
    let needed = sealed - len + TAG;
    let room = buffer.get_mut(start..end).ok_or(SealError::Tailroom { needed })?;
    let (header, text) = room.split_at_mut(HEADROOM);
    let (text, tag) = text.split_at_mut(sealed);
    header.copy_from_slice(&data_header(receiver, counter));
    text[len..].fill(0);
    let sealed = keys.seal.seal(counter, header, text).ok_or(SealError::Cipher)?;
    tag.copy_from_slice(&sealed);
    Ok(start..end)
}

/// A datagram that names a session of ours, and is not known to be genuine.
#[must_use]
pub struct Opening {
    pub(crate) keys: Arc<Keys>,
    pub(crate) session: u32,
    pub(crate) counter: u64,
    pub(crate) peer: PeerId,
    pub(crate) from: SocketAddr,
}

impl Opening {
    /// Whose session it is.
    #[must_use]
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// Opens the datagram that it was staged for.
    ///
    /// # Errors
    /// [`Dropped::Forged`] if it is not genuine.
    pub fn open(self, datagram: &mut [u8]) -> Result<Opened, Dropped> {
        let (header, text) = datagram.split_at_mut_checked(DATA_HEADER).ok_or(Dropped::Forged)?;
        let len = self.keys.open.open(self.counter, header, text).ok_or(Dropped::Forged)?;
        Ok(Opened { opening: self, plain: DATA_HEADER..DATA_HEADER + len })
    }
}

/// A genuine datagram, which may be a replay, or hold what its peer may not send: see
/// [`Tunnel::release`](crate::Tunnel::release).
#[must_use]
pub struct Opened {
    pub(crate) opening: Opening,
    /// Where the plain text lies in the datagram, padding included.
    pub(crate) plain: Range<usize>,
}

impl Opened {
    /// Whose session it is.
    #[must_use]
    pub fn peer(&self) -> PeerId {
        self.opening.peer
    }
}

/// Why nothing came of a packet or datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Outbound: no IP packet, or one cut short. Inbound: a peer sealed none.
    NotIp,
    /// No peer has the destination's address.
    NoPeer(IpAddr),
    /// The peer's address is not known.
    NoEndpoint(PeerId),
    /// The datagram is no message of ours.
    Malformed(Malformed),
    /// The sender does not know our public key.
    BadMac,
    /// The message names an index of no handshake and no session.
    UnknownIndex,
    /// The source has shown a cookie, and sends handshakes too fast.
    TooFast,
    /// A handshake message that is not genuine, or not for us.
    BadHandshake,
    /// A genuine initiation of an unknown peer.
    UnknownPeer,
    /// A genuine initiation offers no suite that we have, or a genuine response chose none of ours.
    NoSuite(PeerId),
    /// A cookie that answers nothing that we sent, or is not genuine.
    BadCookie(PeerId),
    /// The session is too old, or has sent too much.
    Expired(PeerId),
    /// The counter was seen before, or lies too far back.
    Replayed(PeerId),
    /// The datagram is not genuine.
    Forged,
    /// The datagram is genuine, and its session was erased meanwhile.
    SessionGone(PeerId),
    /// The source address does not belong to the peer.
    SourceNotAllowed(PeerId, IpAddr),
    /// There is no randomness.
    NoEntropy,
}

impl From<NoEntropy> for Dropped {
    fn from(_: NoEntropy) -> Self {
        Self::NoEntropy
    }
}
