//! The configuration of `tamis run`: ports, wires, rules, and the policies for what those leave open.
//!
//! Contract: reading starts nothing. Every error names file, line and column, and says what is allowed; a key that this
//! tamis does not know is an error, and so is a key that it knows and cannot serve yet. Relative paths start at the
//! folder of the file that names them. Users find all this in `docs/live.md`.

mod dpdk;
mod files;
mod metrics;
mod middlebox;
mod place;
mod port;
mod privileges;
pub mod properties;
mod read;
mod reopened;
mod settings;
pub(crate) mod topology;
pub mod tunnel;
mod work;

pub(crate) use files::folder;
pub use middlebox::{JavaSettings, MiddleboxSettings, OnError, Side, Slot};
pub use place::{At, ConfigError, Named};
pub(crate) use port::innermost;
pub use privileges::{Privileges, Reopen};
pub use reopened::Reopened;
pub use settings::{
    BurstSettings, Cores, Gone, Kind, LinkLoss, LogFormat, MetricsSettings, OnPanic, Order, Other,
    OwnTable, PortSettings, RestartSettings, RulesSettings, Settings, Ttl, WireSettings, Workers,
};
