//! How many datagrams go from socket to socket over loopback, one by one and together. A measurement, so it runs only
//! when asked for:
//!
//! ```sh
//! cargo test --release -p tamis-pktio --test pktio datagram::throughput -- --ignored --nocapture
//! ```

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pktio::Pool;
use pktio::datagram::{DatagramConfig, DatagramSocket, RecvBatch, SendBatch};

use super::end::message;
use crate::tun::sys;

const RUNS: usize = 5;
const LENGTH: Duration = Duration::from_secs(1);
const BUFFER: usize = 8 << 20;

fn open() -> DatagramSocket {
    DatagramSocket::bind(&DatagramConfig { buffer: BUFFER, ..DatagramConfig::default() }).unwrap()
}

/// Thousands of datagrams received in a second, of `bytes` each, `at_once` given to one call.
fn measure(bytes: usize, at_once: usize) -> f64 {
    let (from, to, is_over) = (open(), open(), AtomicBool::new(false));
    let at = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), to.port());
    let given = vec![vec![7; bytes]; at_once];
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut batch = SendBatch::default();
            while !is_over.load(Ordering::Relaxed) {
                from.send(&mut batch, given.iter().map(|one| message(one, at)));
            }
        });
        let (mut batch, pool) = (RecvBatch::new(32), Pool::new(32, 65_600, 0));
        let (mut spare, mut count, began) = (Vec::new(), 0_u64, Instant::now());
        while began.elapsed() < LENGTH {
            sys::wait(&[to.as_fd()], 100).unwrap();
            pool.fill(&mut spare, 32);
            let each = |frame: pktio::FrameBuf, arrived: pktio::datagram::Arrived| {
                count += frame.bytes().len().div_ceil(arrived.segment) as u64;
            };
            to.recv(&mut batch, &mut spare, each).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        count as f64 / began.elapsed().as_secs_f64() / 1e3
    })
}

/// Ways take turns, so that whatever else the machine does hits all of them.
#[test]
#[ignore = "a measurement"]
fn throughput() {
    const WAYS: [(usize, usize); 4] = [(200, 1), (200, 512), (1452, 1), (1452, 512)];
    let mut found = WAYS.map(|_| Vec::new());
    for _ in 0..RUNS {
        for ((bytes, at_once), found) in WAYS.into_iter().zip(&mut found) {
            found.push(measure(bytes, at_once));
        }
    }
    for ((bytes, at_once), found) in WAYS.into_iter().zip(&mut found) {
        found.sort_by(f64::total_cmp);
        let median = found[RUNS / 2];
        println!("{bytes} bytes, {at_once} at once: median {median:.0} thousand/s of {found:.0?}");
    }
}
