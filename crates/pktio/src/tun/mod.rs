//! [`TunPort`]: a queue of a TUN device. What the kernel routes into the device is received, what is transmitted
//! comes into the kernel's stack as if from a wire: IP packets without a link header.
//!
//! Contract: one system call for each frame, no copy of ours. Frames are read into chunks of a pool. Before each
//! one stands a vnet header (`vnet.rs`): with offloads on, the kernel hands over superframes and unfinished
//! checksums, which [`LiveMeta`](crate::LiveMeta) then tells; with offloads off it finishes and cuts them first.
//! Transmitted frames may be either, always: what their `LiveMeta` says is passed on. The device lives as long as
//! its last port, unless it was made to stay (`ip tuntap add`). Each port may be driven by its own thread; the
//! kernel chooses the queue by flow. A device's only port may have its frames in lanes (`lanes.rs`), each a queue of
//! the kernel's.
//!
//! A port keeps chunks for one burst between bursts; without a free chunk frames wait in the kernel's queue, which is
//! as long as the device's `txqueuelen`, and loses what does not fit (the device's own counters tell).
//!
//! Source: `Documentation/networking/tuntap.rst`; Linux `drivers/net/tun.c`.

mod lanes;
mod port;
pub(crate) mod queue;
mod sys;

pub use port::{Offloads, TunConfig, TunPort};
