//! `tamis tunnel speed`: how fast a peer is reached through the tunnel: round trips, what is lost, and what goes each way.
//!
//! Every tunnel that is up answers at UDP and TCP port [`PORT`] of its own addresses ([`answer`]), unless its configuration says
//! `speed = "off"`; who measures is [`measure`]. Both speak through the tunnel alone, so its rules, and the policy of its network,
//! decide who may measure whom.
//!
//! | | |
//! |---|---|
//! | a datagram | [`WORD`] 13, 0 and whether it is an answer 1, 0; a number 8; zeros 8: it is sent back as an answer |
//! | the first bytes of a connection | [`WORD`] 13; zeros 2; tenths of a second to measure 1 |
//! | the answer | [`GO`], or [`BUSY`] and the end |
//! | then each way, who measures first | blocks of [`BLOCK`] bytes for that time, each with a 1 first; a 0 |
//! | after the first way | bytes, and nanoseconds in which they came, 8 each, big-endian |

mod answer;
mod blocks;
mod command;
mod measure;
mod report;

pub(super) use answer::Answering;
pub(crate) use command::{SpeedArgs, run};

/// The port, next to that of a network's directory.
pub(super) const PORT: u16 = 4_503;
/// What begins a datagram and a connection: the protocol and its version.
const WORD: &[u8; 13] = b"tamis speed 1";
/// Bytes of a datagram.
const PROBE: usize = 32;
/// The byte of a datagram that is 1 in an answer.
const IS_ANSWER: usize = 14;
/// Bytes of the first message of a connection.
const HELLO: usize = 16;
/// Bytes of a block.
const BLOCK: usize = 1 << 16;
/// The answer that the blocks may come.
const GO: u8 = 1;
/// The answer that somebody else measures.
const BUSY: u8 = 2;
/// Tenths of a second that each way takes, at most.
const MOST_TENTHS: u8 = 50;
