//! The configuration of `tamis tunnel up`: this end of the overlay, and its peers. A `[[port]]` of kind `tunnel` names
//! such a file, too.
//!
//! Contract: as for the configuration of a run ([`super`]): every error names file, line and column, and reading starts
//! nothing. Files with secrets that others than their owner may read are refused. Users find all this in
//! `docs/tunnel.md`.

mod cloud;
mod endpoint;
mod file;
mod peer;
mod print;
mod read;
mod secret;
mod settings;
#[cfg(test)]
mod tests;

pub use endpoint::{Endpoint, NoEndpoint, is_name as is_domain};
pub use read::{is_name, preshared_key, private_key};
pub use settings::{
    Ciphers, CloudSettings, Dscp, FOLDER, HOST, Hooks, MARK, MTU, PeerSettings, Table,
    TunnelSettings,
};
