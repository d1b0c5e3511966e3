//! `tamis tunnel demo`: three hosts on this machine, each in a network namespace of its own, and a network between them
//! that anybody may listen at; a tunnel of this program on each, pings through it, and a port that a rule blocks. With
//! `--cloud`: nodes behind routers that find each other by name.
//!
//! Contract: all it makes has this process's number in its name, and goes with it: also after an error, and Ctrl-C.

mod cloud;
mod files;
mod show;
mod story;
mod world;

pub(crate) use story::{DemoArgs, run};
