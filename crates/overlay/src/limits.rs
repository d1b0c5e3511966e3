//! Times and numbers of the protocol: nanoseconds of a monotonic clock, and seconds after 1970.

/// Nanoseconds of a second.
pub const SECOND: u64 = 1_000_000_000;

/// Time between two registrations of a node, which are its keepalive.
pub const REGISTER: u64 = 10 * SECOND;
/// Time after which a registration that nobody answers is sent again.
pub const REGISTER_AGAIN: u64 = SECOND;
/// Age to which a node's word on how it reaches a peer counts.
pub const REACHES: u64 = 60 * SECOND;
/// Time after its last registration for which a node counts as being there.
pub const PRESENT: u64 = 35 * SECOND;

/// Time for which a node waits for the way to another one: as long as programs wait for a server of names.
pub const PATIENCE: u64 = 5 * SECOND;
/// Time after which a question for a way is repeated first; each repetition waits twice as long.
pub const ASK_AGAIN: u64 = SECOND / 5;
/// Time for which a directory keeps the state of a question.
pub const QUESTION: u64 = 10 * SECOND;
/// Questions of one node whose state a directory keeps.
pub const QUESTIONS_OF_NODE: u32 = 256;
/// Questions of all nodes.
pub const QUESTIONS: usize = 1 << 18;
/// Questions of a node itself that wait.
pub const ASKED: usize = 256;

/// Age at which a node asks for a way again that it has.
pub const RENEW_WAY: u64 = 600 * SECOND;
/// Age at which a way that a program asks for is asked for again, rather than answered from memory.
pub const FRESH_WAY: u64 = 30 * SECOND;
/// Age at which a directory forgets a path that nobody asked for again.
pub const PATH: u64 = 1_800 * SECOND;
/// Addresses of its own that a node registers, at most, and places where a node may be.
pub const LOCALS: usize = 4;
/// See [`LOCALS`].
pub const CANDIDATES: usize = LOCALS + 1;
/// Time after which nodes send directly to each other after a punch: their session is there by then.
pub const PUNCH_LEAD: u64 = SECOND / 2;
/// How much later the second one sends, where one is to be first.
pub const PUNCH_SECOND: u64 = SECOND / 5;
/// Age at which a node asks for a way that it was shown without having asked.
pub const CONFIRM: u64 = 15 * SECOND;
/// Time between two attempts: routers forget what came too early in 30 s.
pub const PUNCH_PAUSE: u64 = 35 * SECOND;
/// Time between two attempts where one of the nodes has begun again: an attempt has ended by then.
pub const PUNCH_FRESH: u64 = 3 * SECOND;
/// Age at which a node asks again for a way whose attempts are few, and how many are.
pub const PUNCH_AGAIN: u64 = 40 * SECOND;
/// See [`PUNCH_AGAIN`].
pub const PUNCHES: u32 = 3;

/// Seconds of a node's silence after which a directory looks whether what it says still arrives: one after the other.
pub const RECALLS: [u8; 2] = [3, 7];
/// Time by which that is later at most.
pub const RECALL_LATE: u64 = 2 * SECOND;
/// How often a node that does not answer it is tried.
pub const RECALL_TRIES: u8 = 3;

/// Ports of a relay from which on a directory has nodes probe some of them.
pub const BEACONS: u32 = 8;
/// How often a node is asked to probe again what was not seen of it.
pub const SOUNDINGS: u8 = 3;
/// Time for which attempts wait for the probes that a node was asked for.
pub const SOUNDS: u64 = SECOND / 2;
/// Age to which the port that a router gave last says what the next ones are.
pub const RECENT: u64 = 2 * SECOND;
/// Ports that are tried after the last one of a router that counts on.
pub const GUESSES: usize = 8;
/// Places that a node is asked to probe at once.
pub const PROBES: usize = 4;

/// Peers that a node may have by the directory.
pub const PEERS: usize = 4_096;

/// Seconds for which an identity holds; it is made again after half of them.
pub const IDENTITY: u64 = 12 * 3_600;
/// Seconds for which a one-time key holds.
pub const INVITATION: u64 = 24 * 3_600;

/// Places of a directory: of the directories of a network, which share what they know, one serves.
pub const DIRECTORIES: usize = 4;

/// Relays on hosts of their own, each of which carries all paths.
pub const RELAYS: usize = 4;

/// Looks of a relay for the path of an unknown source: rate per second.
pub const LOOKS: u64 = 1_024;
/// Parts of that rate, one of which an address has.
pub const LOOK_SHARES: u64 = 32;

/// Time for which a path whose rate is limited may send as fast as it likes after a pause.
pub const RATE_BURST: u64 = SECOND / 10;

/// Lines of a log that others may bring about in [`LINES_TIME`].
pub const LINES: u32 = 100;
/// Time in which they may.
pub const LINES_TIME: u64 = 10 * SECOND;

/// Time between two words of a relay or an authority apart, which are its keepalive.
pub const SERVER_SAYS: u64 = SECOND;
/// Time after which a server that says nothing counts as not being there.
pub const SERVER_PRESENT: u64 = 5 * SECOND;
/// Time after which a relay or an authority that hears nothing makes another session with its directory.
pub const SERVER_PATIENCE: u64 = 3 * SECOND;
/// Orders to a server that are on their way at once.
pub const ORDERS_SENT: u64 = 128;
/// Orders that wait for a server, besides the names of all things; with more, all are named again.
pub const ORDERS: usize = 1 << 16;

/// Time after which a node asks again for an identity, if it has none that holds, or has one.
pub const RENEW_AGAIN: u64 = SECOND;
/// See [`RENEW_AGAIN`].
pub const RENEW_PATIENTLY: u64 = 10 * SECOND;
/// Seconds by which the clocks of an authority and a directory may differ before that is said.
pub const SKEW: u64 = 60;
