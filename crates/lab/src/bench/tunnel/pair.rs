//! One pair of hosts: throughput, delays, and what both daemons use meanwhile.

use std::io;
use std::time::{Duration, Instant};

use super::iperf::{Arrived, Load, Transfer, transfer};
use super::overlay::{Daemon, Overlay};
use super::ping::{INTERVAL, Ping};
use super::plan::Plan;
use super::rounds::{Better, Figure, Measure, Sheet};
use super::site::{Host, Pair};

/// Parts of a hundred answers that were no later.
pub(super) const PERCENTILES: [f64; 2] = [50.0, 99.0];
/// Bytes of the datagrams that are sent, and what their figures are called.
const DATAGRAMS: [(u16, &str); 2] = [(200, "tunnel.udp200"), (1300, "tunnel.udp1300")];

/// All of one overlay's turn in a round.
pub(super) fn measure(overlay: &dyn Overlay, plan: &Plan, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let pair = Pair::new(overlay)?;
    for (streams, name) in [(1, "tunnel.tcp1"), (8, "tunnel.tcp8")] {
        let measure = Measure::new(name, "bits/s", Better::More);
        sheet.note(measure, tcp(&pair, streams, plan.tcp()));
    }
    for (length, name) in DATAGRAMS {
        let measure = Measure::new(name, "packets/s", Better::More);
        sheet.note(measure, udp(&pair, length, plan.udp()));
    }
    overload(&pair, plan, sheet);
    let memory = Measure::new("tunnel.memory", "bytes", Better::Less);
    note_memory(memory.with("when", "a pair, after loads"), &pair.far, sheet);
    delays(&pair, plan, sheet);
    Ok(())
}

/// Bits per second by so many connections.
fn tcp(pair: &Pair, streams: u8, seconds: f64) -> io::Result<Figure> {
    let load = Load::Tcp { streams };
    let (arrived, busy) = busy(pair, || transfer(&pair.near, &pair.far, load, seconds))?;
    Ok(Figure::new(arrived.rate).seen("cpu", busy).seen("retransmits", arrived.retransmits))
}

/// Datagrams per second that arrive.
fn udp(pair: &Pair, length: u16, seconds: f64) -> io::Result<Figure> {
    let load = Load::Udp { length, rate: None };
    let (arrived, busy) = busy(pair, || transfer(&pair.near, &pair.far, load, seconds))?;
    let figure = Figure::new(arrived.rate / 8.0 / f64::from(length));
    Ok(figure.seen("cpu", busy).seen("lost", arrived.lost).seen("reordered", arrived.reordered))
}

/// What arrives at the most that can arrive, and at twice that.
fn overload(pair: &Pair, plan: &Plan, sheet: &mut Sheet<'_>) {
    let measure = |times: u8| {
        let measure = Measure::new("tunnel.overload", "bits/s", Better::More);
        measure.with("times", times)
    };
    let capacity = match capacity(pair) {
        Ok(capacity) => capacity,
        Err(error) => return sheet.note(measure(1), Err(error)),
    };
    for times in [1, 2] {
        let arrived = paced(pair, capacity * f64::from(times), plan.udp());
        sheet.note(measure(times), arrived.map(|one| Figure::new(one.rate).seen("lost", one.lost)));
    }
}

/// Bits a second that arrive at most, of rates that double until a tenth is lost.
fn capacity(pair: &Pair) -> io::Result<f64> {
    const FIRST: f64 = 1e8;
    const LAST: f64 = 2e10;
    let (mut offered, mut most) = (FIRST, 0.0_f64);
    while offered < LAST {
        let Arrived { rate, lost, .. } = paced(pair, offered, 1.0)?;
        most = most.max(rate);
        // The sender may be the one that can do no more.
        if lost > 10.0 || rate < offered * 0.8 {
            break;
        }
        offered *= 2.0;
    }
    Ok(most)
}

/// Datagrams of 1300 bytes, so many bits a second.
fn paced(pair: &Pair, rate: f64, seconds: f64) -> io::Result<Arrived> {
    let load = Load::Udp { length: 1300, rate: Some(rate as u64) };
    transfer(&pair.near, &pair.far, load, seconds)
}

/// How long a packet is on its way there and back, alone, beside a connection, and beside ten.
fn delays(pair: &Pair, plan: &Plan, sheet: &mut Sheet<'_>) {
    let ping = || Ping::start(&pair.near, pair.far.end.address, INTERVAL, plan.tcp());
    let idle = || ping()?.finish();
    let beside = |streams| {
        let mut load = Transfer::listen(&pair.far, 0)?;
        load.send(&pair.near, Load::Tcp { streams }, plan.tcp() + 1.0)?;
        // Until the connection is under way.
        std::thread::sleep(Duration::from_millis(300));
        let times = ping()?.finish()?;
        load.finish()?;
        Ok(times)
    };
    for (name, times) in [
        ("tunnel.ping_idle", idle()),
        ("tunnel.ping_load", beside(1)),
        ("tunnel.ping_load10", beside(10)),
    ] {
        for percentile in PERCENTILES {
            let measure = Measure::new(name, "ms", Better::Less).with("percentile", percentile);
            let figure =
                times.as_ref().map_err(|error: &io::Error| io::Error::other(error.to_string()));
            let figure = figure.and_then(|times| {
                Ok(Figure::new(times.percentile(percentile)?).seen("lost", times.lost as f64))
            });
            sheet.note(measure, figure);
        }
    }
}

/// Runs something; percent of one core that both daemons took meanwhile.
fn busy<T>(pair: &Pair, work: impl FnOnce() -> io::Result<T>) -> io::Result<(T, f64)> {
    let spent = || Ok::<_, io::Error>(pair.near.daemon()?.spent()? + pair.far.daemon()?.spent()?);
    let (since, before) = (Instant::now(), spent()?);
    let done = work()?;
    let nanos = spent()?.saturating_sub(before) as f64;
    Ok((done, nanos / since.elapsed().as_nanos() as f64 * 100.0))
}

/// Notes the bytes of an end's daemon that lie in memory, and its threads; there may be none.
pub(super) fn note_memory(measure: Measure, host: &Host, sheet: &mut Sheet<'_>) {
    let figure = |daemon: &Daemon| {
        let threads = daemon.threads()? as f64;
        Ok(Figure::new(daemon.resident()? as f64).seen("threads", threads))
    };
    match host.daemon() {
        Ok(daemon) if daemon.is_nobody() => (),
        Ok(daemon) => sheet.note(measure, figure(daemon)),
        Err(error) => sheet.note(measure, Err(error)),
    }
}
