//! `tamis tunnel`: keys, imports, and tunnels on hosts of their own.

mod demo;
mod host;
mod import;
mod keys;
mod names;
mod peers;
mod undone;
