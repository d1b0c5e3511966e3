//! [`Tracker`]: one packet's way through tracking, from lookup to confirmation.
//!
//! [`Tracker::track`] when the packet comes to PREROUTING or OUTPUT after the raw table; the answer is good until the
//! next call. [`Tracker::confirm`] when it passes POSTROUTING or INPUT at the end, or [`Tracker::discard`] when it does
//! not; a new flow that is not confirmed by the next call is discarded.
//!
//! Contract: one packet at a time; times never run backwards; no clock, no panic, bounded memory.
//!
//! What cannot be known stays open. A flow whose first packet has no certain verdict is kept in doubt
//! ([`Doubt::Existence`](crate::Doubt::Existence)): its packets are what the flow makes of them or what they would be without it.
//! Once another packet of it passed ([`Doubt::History`](crate::Doubt::History)), they may be part of an established flow or, in
//! protocols with a state machine, INVALID as well. A flow in doubt lives as long as its protocol's longest
//! timeout. A packet of which not even the ports were captured is unknown and changes no flow; it may begin
//! one, and what may belong to that is unknown as well.
//!
//! Source: Linux 6.18 `nf_conntrack_core.c` (`nf_conntrack_in`, `resolve_normal_ct`, `init_conntrack`,
//! `__nf_conntrack_confirm`).

mod ask;
mod attach;
mod flows;
mod grace;
mod help;
mod keep;
mod leave;
mod life;
mod overlook;
mod proxied;
mod query;
mod start;
mod stepped;
mod tell;
mod track;
mod translation;
mod unseen;
mod visit;

pub use ask::{InStates, Part};
pub use attach::{AnswerKind, Attachment, answerable, answered};
pub use flows::Tracker;
pub use leave::Confirmation;
pub use translation::Before;
pub use visit::{EntryHook, Proxy, Template, Visit};
