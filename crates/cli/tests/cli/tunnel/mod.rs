//! `tamis tunnel`: keys, imports, and tunnels on hosts of their own.

mod demo;
mod import;
mod keys;
mod names;
mod undone;
