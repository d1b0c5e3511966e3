//! The study's test: a responder, and initiators behind a router that translates addresses, all at once.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use super::iperf::{Arrived, Load, Transfer};
use super::overlay::Overlay;
use super::pair::{PERCENTILES, note_memory};
use super::ping::{Ping, Times};
use super::plan::Plan;
use super::rounds::{Better, Figure, Measure, Sheet};
use super::site::Star;
use super::trend::{self, Moment, Trend};

/// Between two requests of each initiator.
const INTERVAL: Duration = Duration::from_millis(20);
/// Bits per second of paced datagrams of each initiator, and bytes of each datagram.
const RATE: u64 = 20_000_000;
const LENGTH: u16 = 1300;
/// Until memory that is given back has been.
const SETTLE: Duration = Duration::from_secs(3);

/// Which load, and what its figures are called.
struct Test {
    load: Load,
    arrived: &'static str,
    ping: &'static str,
    /// Of [`TREND`].
    name: &'static str,
}

/// What the responder has from second to second.
const TREND: &str = "tunnel.trend";

const TESTS: [Test; 3] = [
    Test {
        load: Load::Tcp { streams: 1 },
        arrived: "tunnel.ten_tcp",
        ping: "tunnel.ten_tcp_ping",
        name: "TCP",
    },
    Test {
        load: Load::Udp { length: LENGTH, rate: None },
        arrived: "tunnel.ten_udp_most",
        ping: "tunnel.ten_udp_most_ping",
        name: "UDP",
    },
    Test {
        load: Load::Udp { length: LENGTH, rate: Some(RATE) },
        arrived: "tunnel.ten_udp",
        ping: "tunnel.ten_udp_ping",
        name: "UDP, 20 Mbit/s each",
    },
];

/// One overlay's turn in a round.
struct Turn<'t> {
    star: &'t Star,
    plan: &'t Plan,
}

/// All of one overlay's turn in a round.
pub(super) fn measure(
    overlay: &dyn Overlay,
    plan: &Plan,
    initiators: u8,
    sheet: &mut Sheet<'_>,
) -> io::Result<()> {
    let mut star = Star::new(overlay, initiators, plan.as_study)?;
    let memory = |turn: &Turn<'_>, when: &'static str| {
        turn.measure("tunnel.memory", "bytes", Better::Less).with("when", when)
    };
    let turn = Turn { star: &star, plan };
    note_memory(memory(&turn, "idle"), &star.responder, sheet);
    for test in &TESTS {
        turn.at_once(test, sheet);
    }
    note_memory(memory(&turn, "after loads"), &star.responder, sheet);
    if let Some(group) = &star.group {
        let most = turn.measure("tunnel.memory_of_host", "bytes", Better::Less);
        sheet.note(most, group.peak().map(|bytes| Figure::new(bytes as f64)));
    }
    let left = memory(&turn, "peers left");
    match star.leave(overlay) {
        Ok(()) => {
            thread::sleep(SETTLE);
            note_memory(left, &star.responder, sheet);
        }
        Err(error) => sheet.note(left, Err(error)),
    }
    Ok(())
}

impl Turn<'_> {
    /// A measure, with the number of initiators, and where the responder is as in the study, with that.
    fn measure(&self, name: &'static str, unit: &'static str, better: Better) -> Measure {
        let initiators = self.star.initiators.len();
        let measure = Measure::new(name, unit, better).with("initiators", initiators);
        if self.plan.as_study { measure.with("responder", "as in the study") } else { measure }
    }

    /// All initiators send, and ping meanwhile.
    fn at_once(&self, test: &Test, sheet: &mut Sheet<'_>) {
        let rate = self.measure(test.arrived, "bits/s", Better::More);
        let (arrived, times, busy, trend) = match self.watched(test) {
            Ok(found) => found,
            Err(error) => return sheet.note(rate, Err(error)),
        };
        sheet.note(rate, Ok(sum(test, &arrived).seen("cpu", busy)));
        for percentile in PERCENTILES {
            let measure = self.measure(test.ping, "ms", Better::Less);
            let figure = times.percentile(percentile);
            sheet.note(
                measure.with("percentile", percentile),
                figure.map(|millis| Figure::new(millis).seen("lost", times.lost as f64)),
            );
        }
        for Moment { second, bytes, threads } in trend {
            let measure = self.measure(TREND, "bytes", Better::Less).with("load", test.name);
            let figure = Figure::new(bytes as f64).seen("threads", threads as f64);
            sheet.note(measure.with("second", second), Ok(figure));
        }
    }

    /// What arrived of each, how long packets were under way, percent of one core that the responder's daemon took, and
    /// what it had meanwhile.
    fn watched(&self, test: &Test) -> io::Result<(Vec<Arrived>, Times, f64, Trend)> {
        let daemon = self.star.responder.daemon()?;
        let after = if self.plan.quick { SETTLE / 3 } else { SETTLE };
        let work = || {
            let (since, before) = (Instant::now(), daemon.spent()?);
            let (arrived, times) = self.run(test)?;
            let nanos = daemon.spent()?.saturating_sub(before) as f64;
            Ok((arrived, times, nanos / since.elapsed().as_nanos() as f64 * 100.0))
        };
        let ((arrived, times, busy), trend) = trend::during(daemon, after, work)?;
        Ok((arrived, times, busy, trend))
    }

    fn run(&self, test: &Test) -> io::Result<(Vec<Arrived>, Times)> {
        let Star { responder, initiators, .. } = self.star;
        let mut transfers = (0..)
            .zip(initiators)
            .map(|(number, _)| Transfer::listen(responder, number))
            .collect::<io::Result<Vec<_>>>()?;
        for (transfer, host) in transfers.iter_mut().zip(initiators) {
            transfer.send(host, test.load, self.plan.star())?;
        }
        let address = responder.end.address;
        let ping = |host| Ping::start(host, address, INTERVAL, self.plan.star());
        let pings = initiators.iter().map(ping).collect::<io::Result<Vec<_>>>()?;
        let arrived =
            transfers.into_iter().map(Transfer::finish).collect::<io::Result<Vec<_>>>()?;
        let times = pings.into_iter().map(Ping::finish).collect::<io::Result<Vec<_>>>()?;
        Ok((arrived, Times::of(times)))
    }
}

/// What arrived of all.
fn sum(test: &Test, arrived: &[Arrived]) -> Figure {
    let sum = |of: fn(&Arrived) -> f64| arrived.iter().map(of).sum::<f64>();
    let least = arrived.iter().map(|one| one.rate).fold(f64::INFINITY, f64::min);
    let figure = Figure::new(sum(|one| one.rate)).seen("least", least);
    match test.load {
        Load::Tcp { .. } => figure.seen("retransmits", sum(|one| one.retransmits)),
        Load::Udp { .. } => figure
            .seen("lost", sum(|one| one.lost) / arrived.len() as f64)
            .seen("reordered", sum(|one| one.reordered)),
    }
}
