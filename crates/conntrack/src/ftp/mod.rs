//! The FTP helper: finds in a control connection the data connections to expect.
//!
//! Only the beginning of a line is searched, and where lines begin is known from where earlier packets
//! ended; so the first line of each side is never read. Commands come in the original direction (PORT,
//! EPRT), answers in the other (227, 229). An address other than the speaker's own is not believed.
//!
//! Source: Linux 6.18 `nf_conntrack_ftp.c`; RFC 959 (PORT, 227), RFC 2428 (EPRT, 229).

mod search;
pub(crate) mod text;

pub(crate) use search::{Found, KnownStarts, look, may_expect};
