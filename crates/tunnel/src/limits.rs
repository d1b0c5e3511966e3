//! How long things last, in nanoseconds unless a name says otherwise: WireGuard's (NDSS 2017, section 6.1), so that
//! behaviour is what its users know, and what is ours.

/// A second.
pub const SECOND: u64 = 1_000_000_000;

/// A session as old is replaced by its initiator when it sends.
pub const REKEY_AFTER_TIME: u64 = 120 * SECOND;
/// And by its responder, ours: after simultaneous handshakes both ends may send by the session that they answered,
/// and then nobody else would.
pub const RESPONDER_REKEY_AFTER_TIME: u64 = 135 * SECOND;
/// A session as old neither seals nor opens.
pub const REJECT_AFTER_TIME: u64 = 180 * SECOND;
/// A session as old is erased, if nothing displaced it before.
pub const ERASE_AFTER_TIME: u64 = 3 * REJECT_AFTER_TIME;
/// Between an initiation that nobody answers and the next, at least.
pub const REKEY_TIMEOUT: u64 = 5 * SECOND;
/// Initiations that nobody answers end after as long.
pub const REKEY_ATTEMPT_TIME: u64 = 90 * SECOND;
/// A retry comes by up to as much later, so that two ends that began together do not go on together.
pub const REKEY_JITTER: u64 = SECOND / 3;
/// Who hears data and has nothing to say answers with a keepalive after as long.
pub const KEEPALIVE_TIMEOUT: u64 = 10 * SECOND;
/// Who sends data and hears nothing begins a handshake after as long.
pub const SILENCE_TIMEOUT: u64 = KEEPALIVE_TIMEOUT + REKEY_TIMEOUT;
/// An initiator that still receives by a session as old replaces it, in time for [`REJECT_AFTER_TIME`].
pub const REKEY_ON_RECEIVE_TIME: u64 = REJECT_AFTER_TIME - KEEPALIVE_TIMEOUT - REKEY_TIMEOUT;
/// A secret of cookies is as old at most; one more is remembered.
pub const COOKIE_SECRET_TIME: u64 = 120 * SECOND;
/// A cookie is sent along for as long: less than its secret lasts, by what it may take to arrive.
pub const COOKIE_TIME: u64 = COOKIE_SECRET_TIME - 5 * SECOND;
/// Between two initiations of one peer that are answered, at least: 50 a second.
pub const INITIATION_GAP: u64 = SECOND / 50;

/// Between two datagrams that name no session of ours and are looked at for whose they may be, at least: whoever floods
/// us with such has all peers looked through no more often than that.
pub const LOOK_GAP: u64 = SECOND / 100;

/// Handshake messages of one source, a second, and at once.
pub const SOURCE_RATE: (u64, u64) = (20, 5);
/// Handshake messages of all sources that have not shown a cookie, a second, and at once. Who sends more has to show
/// one.
pub const UNPROVEN_RATE: (u64, u64) = (200, 100);
/// Sources of which rates are remembered, at most.
pub const SOURCES: usize = 4096;
