//! The study's test: a responder, and initiators behind a router that translates addresses, all at once.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use super::iperf::{Amount, Arrived, Load, Transfer};
use super::overlay::Overlay;
use super::pair::{PERCENTILES, note_memory};
use super::ping::{Ping, Times};
use super::plan::Plan;
use super::rounds::{Better, Figure, Measure, Sheet};
use super::site::Star;

/// Between two requests of each initiator.
const INTERVAL: Duration = Duration::from_millis(20);
/// What each initiator sends in datagrams: bits per second, and bytes of each.
const RATE: u64 = 20_000_000;
const LENGTH: u16 = 1300;
/// What each initiator sends where the amount is the study's.
const GIBIBYTE: u64 = 1 << 30;
/// Until memory that is given back has been.
const SETTLE: Duration = Duration::from_secs(3);

/// Which load, and what its figures are called.
struct Test {
    load: Load,
    arrived: &'static str,
    ping: &'static str,
    amount: Amount,
}

/// All of one overlay's turn in a round.
pub(super) fn measure(
    overlay: &dyn Overlay,
    plan: &Plan,
    initiators: u8,
    sheet: &mut Sheet<'_>,
) -> io::Result<()> {
    let mut star = Star::new(overlay, initiators)?;
    let memory = |when: &'static str| {
        let measure = Measure::new("tunnel.memory", "bytes", Better::Less);
        measure.with("initiators", initiators).with("when", when)
    };
    note_memory(memory("idle"), &star.responder, sheet);
    let seconds = Amount::Seconds(plan.star());
    let tcp = Test {
        load: Load::Tcp { streams: 1 },
        arrived: "tunnel.ten_tcp",
        ping: "tunnel.ten_tcp_ping",
        amount: if plan.gibibyte { Amount::Bytes(GIBIBYTE) } else { seconds },
    };
    let udp = Test {
        load: Load::Udp { length: LENGTH, rate: Some(RATE) },
        arrived: "tunnel.ten_udp",
        ping: "tunnel.ten_udp_ping",
        amount: seconds,
    };
    for test in [tcp, udp] {
        at_once(&star, plan, &test, sheet);
    }
    note_memory(memory("after loads"), &star.responder, sheet);
    match star.leave(overlay) {
        Ok(()) => {
            thread::sleep(SETTLE);
            note_memory(memory("peers left"), &star.responder, sheet);
        }
        Err(error) => sheet.note(memory("peers left"), Err(error)),
    }
    Ok(())
}

/// All initiators send, and ping meanwhile.
fn at_once(star: &Star, plan: &Plan, test: &Test, sheet: &mut Sheet<'_>) {
    let initiators = star.initiators.len();
    let measure =
        |name, unit, better| Measure::new(name, unit, better).with("initiators", initiators);
    let rate = measure(test.arrived, "bits/s", Better::More);
    let (arrived, times, busy) = match run(star, plan, test) {
        Ok(found) => found,
        Err(error) => return sheet.note(rate, Err(error)),
    };
    let sum = |of: fn(&Arrived) -> f64| arrived.iter().map(of).sum::<f64>();
    let least = arrived.iter().map(|one| one.rate).fold(f64::INFINITY, f64::min);
    let figure = Figure::new(sum(|one| one.rate)).seen("cpu", busy).seen("least", least);
    let figure = match test.load {
        Load::Tcp { .. } => figure.seen("retransmits", sum(|one| one.retransmits)),
        Load::Udp { .. } => figure
            .seen("lost", sum(|one| one.lost) / arrived.len() as f64)
            .seen("reordered", sum(|one| one.reordered)),
    };
    sheet.note(rate, Ok(figure));
    for percentile in PERCENTILES {
        let measure = measure(test.ping, "ms", Better::Less).with("percentile", percentile);
        let figure = times.percentile(percentile);
        sheet.note(
            measure,
            figure.map(|millis| Figure::new(millis).seen("lost", times.lost as f64)),
        );
    }
}

/// What arrived of each, how long packets were under way, and percent of one core that the responder's daemon took.
fn run(star: &Star, plan: &Plan, test: &Test) -> io::Result<(Vec<Arrived>, Times, f64)> {
    let Star { responder, initiators, .. } = star;
    let daemon = responder.daemon()?;
    let (since, before) = (Instant::now(), daemon.spent()?);
    let mut transfers = (0..)
        .zip(initiators)
        .map(|(number, _)| Transfer::listen(responder, number))
        .collect::<io::Result<Vec<_>>>()?;
    for (transfer, host) in transfers.iter_mut().zip(initiators) {
        transfer.send(host, test.load, test.amount)?;
    }
    let ping = |host| Ping::start(host, responder.end.address, INTERVAL, plan.star());
    let pings = initiators.iter().map(ping).collect::<io::Result<Vec<_>>>()?;
    let arrived = transfers.into_iter().map(Transfer::finish).collect::<io::Result<Vec<_>>>()?;
    let nanos = daemon.spent()?.saturating_sub(before) as f64;
    let busy = nanos / since.elapsed().as_nanos() as f64 * 100.0;
    let times = pings.into_iter().map(Ping::finish).collect::<io::Result<Vec<_>>>()?;
    Ok((arrived, Times::of(times), busy))
}
