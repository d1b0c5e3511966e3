//! TCP between a pair, beside datagrams from its third host.

use std::io;

use super::sender::Sender;
use crate::bench::tunnel::iperf::{Load, transfer};
use crate::bench::tunnel::plan::Plan;
use crate::bench::tunnel::site::Pair;

/// Nobody listens there.
pub(super) const CLOSED: u16 = 9;

/// Bits per second by TCP while datagrams are sent, and how many of those a second.
pub(super) fn beside(
    pair: &Pair,
    plan: &Plan,
    datagrams: &[Vec<u8>],
    port: u16,
) -> io::Result<(f64, f64)> {
    let sender = Sender::start(&pair.third, (pair.target(), port), datagrams.to_vec())?;
    let arrived = rate(pair, plan);
    let sent = sender.stop()?;
    Ok((arrived?, sent))
}

/// Bits per second by TCP.
pub(super) fn rate(pair: &Pair, plan: &Plan) -> io::Result<f64> {
    let load = Load::Tcp { streams: 1 };
    Ok(transfer(&pair.near, &pair.far, load, plan.tcp())?.rate)
}
