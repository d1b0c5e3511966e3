//! nftables rulesets: what `nft list ruleset` prints, text or JSON, as a typed model and back.
//!
//! [`text::parse`] and [`json::read::ruleset`] give one [`model::Ruleset`] of one ruleset; [`text::print`] and
//! [`json::write`] print it as nft 1.1 does. Rules are statements ([`stmt`]) over expressions ([`expr`]), never
//! registers. [`lower`] makes rules of them that a walk evaluates.

pub mod expr;
mod family;
pub mod foreign;
pub mod headers;
pub mod json;
pub mod lower;
pub mod model;
mod normal;
pub mod stmt;
mod symbols;
pub mod text;
pub mod types;
