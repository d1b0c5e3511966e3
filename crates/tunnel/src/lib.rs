//! The protocol of tamis' overlay: two peers agree on keys, and seal and open each other's datagrams.
//!
//! The handshake is Noise IKpsk2, and sessions, cookies and timers behave as WireGuard's do (Donenfeld, "WireGuard:
//! Next Generation Kernel Network Tunnel", NDSS 2017), but **this is not WireGuard on the wire**: messages are our own
//! ([`message`]), the cipher of a session is negotiated, and a peer whose clock was reset learns of it.
//! `docs/tunnel.md` has every message, byte by byte.
//!
//! Contract: no sockets, no threads, no clock, no `unsafe`. Time is passed in as nanoseconds of a monotonic clock
//! that begins anywhere, entropy by [`Entropy`]. Datagrams are sealed and opened where they lie, without
//! allocation. A [`Tunnel`] has one owner, which stages and releases in order; what it stages ([`Sealing`],
//! [`Opening`]) any thread may carry out, without a lock:
//!
//! | | sequential | parallel | sequential |
//! |---|---|---|---|
//! | outbound | [`Tunnel::stage`]: peer, session, counter | [`Sealing::seal`] | sent in the order of staging |
//! | inbound | [`Tunnel::receive`]: session; handshakes | [`Opening::open`] | [`Tunnel::release`]: replays, source |
//!
//! Timers are asked for by [`Tunnel::due`]. Nothing here panics on input, and all memory is bounded by the peers that
//! were added.
#![forbid(unsafe_code)]

mod admission;
mod aead;
mod allowed;
mod cookie;
mod direct;
mod entropy;
mod inner;
mod job;
mod key_text;
mod keys;
pub mod limits;
mod mac;
pub mod message;
mod noise;
mod peer;
mod relays;
mod session;
mod timers;
mod timestamp;
mod tunnel;
mod window;

pub use aead::{Aead, NoSuite, Offer, Sealed, Suite};
pub use allowed::{Allowed, NotAPrefix, Prefix, PrefixTooLong};
pub use direct::{Path, Tried};
pub use entropy::{Entropy, NoEntropy, SystemEntropy};
pub use inner::Inner;
pub use job::{Dropped, HEADROOM, Opened, Opening, SealError, Sealing, SealingRun, TAILROOM};
pub use key_text::NotAKey;
pub use keys::{PresharedKey, PrivateKey, PublicKey};
pub use mac::Addressee;
pub use peer::{PeerConfig, PeerId, PeerStatus};
pub use timestamp::Timestamp;
pub use tunnel::{
    AddPeerError, Config, Content, Delivered, Due, Outgoing, Received, Staged, Tunnel, Unstaged,
};
pub use window::Window;
