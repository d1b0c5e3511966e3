//! `tamis tunnel`: keys, imports, and tunnels on hosts of their own.

mod between;
mod demo;
mod host;
mod hosts;
mod import;
mod keys;
mod names;
mod peers;
mod undone;
