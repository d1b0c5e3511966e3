//! How long things last, in nanoseconds unless a name says otherwise: WireGuard's (NDSS 2017, section 6.1), so that
//! behaviour is what its users know, and what is ours.

/// A second.
pub const SECOND: u64 = 1_000_000_000;

/// Age at which a session's initiator replaces it when it sends.
pub const REKEY_AFTER_TIME: u64 = 120 * SECOND;
/// Age at which the responder replaces it, ours: after simultaneous handshakes both ends may send with the session that
/// they answered, and then neither initiator would replace it.
pub const RESPONDER_REKEY_AFTER_TIME: u64 = 135 * SECOND;
/// Age from which a session neither seals nor opens.
pub const REJECT_AFTER_TIME: u64 = 180 * SECOND;
/// Age at which a session is erased, if nothing displaced it before.
pub const ERASE_AFTER_TIME: u64 = 3 * REJECT_AFTER_TIME;
/// Time for which a session is kept that others displaced: datagrams are on their way for less.
pub const DISPLACED_TIME: u64 = 5 * SECOND;
/// Time between an unanswered initiation and the next, at least.
pub const REKEY_TIMEOUT: u64 = 5 * SECOND;
/// Time after which unanswered initiations end.
pub const REKEY_ATTEMPT_TIME: u64 = 90 * SECOND;
/// The most by which a retry is delayed, so that two ends that began together do not continue in step.
pub const REKEY_JITTER: u64 = SECOND / 3;
/// Time after which an end that hears data and has nothing to say answers with a keepalive.
pub const KEEPALIVE_TIMEOUT: u64 = 10 * SECOND;
/// Time after which an end that sends data and hears nothing begins a handshake.
pub const SILENCE_TIMEOUT: u64 = KEEPALIVE_TIMEOUT + REKEY_TIMEOUT;
/// Age at which an initiator replaces a session that it still receives on, in time for [`REJECT_AFTER_TIME`].
pub const REKEY_ON_RECEIVE_TIME: u64 = REJECT_AFTER_TIME - KEEPALIVE_TIMEOUT - REKEY_TIMEOUT;
/// Greatest age of a cookie secret; the one before it is remembered, too.
pub const COOKIE_SECRET_TIME: u64 = 120 * SECOND;
/// Time for which a cookie is sent along: less than its secret lasts, by what it may take to arrive.
pub const COOKIE_TIME: u64 = COOKIE_SECRET_TIME - 5 * SECOND;
/// Time between two datagrams of unknown sessions for which we look for the peer, at least: a flood of such datagrams
/// makes us search all peers no more often than that.
pub const LOOK_GAP: u64 = SECOND / 100;

/// Places where a peer may be that a relay reaches.
pub const CANDIDATES: usize = 14;
/// Places that a peer sees us probe at once, besides its own.
pub const ASIDES: usize = 4;
/// Time between two rounds of probes of an attempt to reach it there.
pub const ATTEMPT_STEP: u64 = SECOND / 10;
/// Rounds of an attempt.
pub const ATTEMPT_ROUNDS: u32 = 15;
/// Time for which an attempt waits for a session.
pub const ATTEMPT_WAIT: u64 = 5 * SECOND;
/// Time after which a direct path is probed on which data was sent and nothing came.
pub const DIRECT_SILENCE: u64 = SECOND;
/// Time after which it is probed anyhow, which also makes routers remember it.
pub const DIRECT_IDLE: u64 = 20 * SECOND;
/// Time after which a probe of it is lost.
pub const DIRECT_AGAIN: u64 = SECOND / 2;
/// Probes that are lost in a row when it is given up.
pub const DIRECT_LOST: u32 = 3;
/// Time after which a direct path that was given up is tried again.
pub const DIRECT_RETRY: u64 = 35 * SECOND;

/// Relays by which a peer may be reached.
pub const RELAYS: usize = 4;
/// By how much a relay is quicker at least that is used in place of another one.
pub const RELAY_BETTER: u64 = 2 * SECOND / 1_000;

/// By how much a relay may be late, besides the time that another one takes.
pub const RELAY_LATE: u64 = SECOND / 10;

/// Handshake messages of one source: rate per second, and burst. A source with a cookie may send no more.
pub const SOURCE_RATE: (u64, u64) = (20, 5);
/// Handshake messages of all sources without a cookie: rate per second, and burst. More is load, under which they have
/// to show one.
pub const UNPROVEN_RATE: (u64, u64) = (200, 100);
/// How much of that burst is kept for sources that send no faster than [`SOURCE_RATE`].
pub const UNPROVEN_RESERVE: u64 = 50;
