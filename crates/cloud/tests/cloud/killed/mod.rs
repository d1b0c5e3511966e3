//! kill -9 at random points of enrolments, registrations, directions and revocations: nothing acknowledged is lost, and nodes
//! are back in time. A slice here; `TAMIS_KILLS=500 cargo test -p tamis-cloud --test cloud killed` has all of it.

mod device;
mod model;
mod process;

use std::time::{Duration, Instant};

use model::{Counts, Model};
use process::Cloud;

use crate::etcd::Server;

/// Within what time all nodes are there again once the killed cloud serves again, where that is measured.
const BACK: Duration = Duration::from_secs(3);
/// Within what time they are on a machine that has other work.
const PATIENCE: Duration = Duration::from_secs(90);
/// A kill comes within this time.
const SOON: u64 = 250;
/// One in these kills comes once all nodes are back, and then within this time.
const LATE: u64 = 1_000;
const ONE_IN: u64 = 5;

/// Kills of two directories that share etcd, which each take the lease's time.
const OF_TWO: u64 = 6;
/// For how long etcd is away.
const AWAY: Duration = Duration::from_millis(700);

#[test]
fn kills_at_random_points_lose_nothing_acknowledged() {
    let times: Option<u64> = std::env::var("TAMIS_KILLS").ok().map(|times| times.parse().unwrap());
    let (times, back) = times.map_or((20, PATIENCE), |times| (times, BACK));
    let counts = play(Cloud::new(None), times, back);
    assert!(counts.enrolled >= times / 4, "too little happened: {counts}");
}

/// Each takes over what the other one has acknowledged, and goes on while etcd is away.
#[test]
fn either_of_two_directories_may_be_killed_and_etcd_too() {
    let Some(etcd) = Server::here() else { return };
    etcd.wait();
    let times = std::env::var("TAMIS_KILLS").map_or(OF_TWO, |times| times.parse().unwrap());
    let counts = play(Cloud::new(Some(etcd)), times, PATIENCE);
    assert!(counts.enrolled >= times / 4, "too little happened: {counts}");
}

/// Kills who serves that many times; returns what was acknowledged.
fn play(cloud: Cloud, times: u64, back: Duration) -> Counts {
    let mut random = fastrand::Rng::new();
    println!("seed {}", random.get_seed());
    let mut model = Model::new(random.fork(), cloud);
    let mut longest = Duration::ZERO;
    for number in 0..times {
        model.start();
        let served = Instant::now();
        let is_long = number % ONE_IN == 0;
        if is_long {
            while !model.missing().is_empty() {
                assert!(served.elapsed() < back, "kill {number}: {:?}", model.missing());
                model.turn();
            }
            longest = longest.max(served.elapsed());
        }
        if number % 2 == 1 && model.cloud.etcd.is_some() {
            goes_on_without_etcd(&mut model);
        }
        let within = if is_long { LATE } else { SOON };
        let killed = model.cloud.kill_after(Duration::from_millis(random.u64(0..within)));
        while !killed.is_finished() {
            model.act();
            model.turn();
        }
        killed.join().unwrap();
        model.forget_new_ways();
    }
    model.start();
    eprintln!("{times} kills; {}; all nodes back after {longest:?} at most", model.counts());
    model.counts()
}

/// Kills etcd, which comes back while who serves still serves.
fn goes_on_without_etcd(model: &mut Model) {
    if let Some(etcd) = &mut model.cloud.etcd {
        etcd.kill();
        let since = Instant::now();
        while since.elapsed() < AWAY {
            model.act();
            model.turn();
        }
    }
    if let Some(etcd) = &mut model.cloud.etcd {
        etcd.start();
        etcd.wait();
    }
    model.cloud.reaches_etcd();
}
