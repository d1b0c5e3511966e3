//! `tamis tunnel`: keys, imports, and tunnels on hosts of their own.

mod between;
mod black_hole;
mod clocks;
mod demo;
mod host;
mod hosts;
mod impaired;
mod import;
mod keys;
mod names;
mod peers;
mod told;
mod translated;
mod undone;
