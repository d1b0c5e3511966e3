//! Rulesets of nftables: which texts are such, and the rules that packets of each family walk ([`nft::lower`]).
//!
//! One listing has the rules of IPv4 and of IPv6.
//!
//! Source: nft(8), libnftables-json(5).

mod counted;
mod doubts;
mod families;
mod included;
mod lines;
mod listing;

pub(crate) use counted::{Walked, print};
pub(crate) use doubts::doubts;
pub(crate) use families::{Lacking, OfFamily, families, hint, of_family};
pub(crate) use lines::of_chains as lines_of_chains;
pub use listing::{Language, Listing, language_of, read};
