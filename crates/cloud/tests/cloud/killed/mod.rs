//! kill -9 at random points of enrolments, registrations, directions and revocations: nothing acknowledged is lost, and nodes
//! are back in time. A slice here; `TAMIS_KILLS=500 cargo test -p tamis-cloud --test cloud killed` has all of it.

mod device;
mod model;
mod process;

use std::time::{Duration, Instant};

use model::Model;

/// Within what time all nodes are there again once the killed cloud serves again, where that is measured.
const BACK: Duration = Duration::from_secs(3);
/// Within what time they are on a machine that has other work.
const PATIENCE: Duration = Duration::from_secs(90);
/// A kill comes within this time.
const SOON: u64 = 250;
/// One in these kills comes once all nodes are back, and then within this time.
const LATE: u64 = 1_000;
const ONE_IN: u64 = 5;

#[test]
fn kills_at_random_points_lose_nothing_acknowledged() {
    let times: Option<u64> = std::env::var("TAMIS_KILLS").ok().map(|times| times.parse().unwrap());
    let (times, back) = times.map_or((20, PATIENCE), |times| (times, BACK));
    let mut random = fastrand::Rng::new();
    println!("seed {}", random.get_seed());
    let mut model = Model::new(random.fork());
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
    assert!(model.counts().enrolled >= times / 4, "too little happened: {}", model.counts());
}
