//! Rules that change while frames cross a wire: what that costs of the rate, how long a change takes, and that no packet
//! is lost to it.
//!
//! Contract: each revision marks packets with its own number and drops those that another one has marked, so a packet
//! that met two would be dropped, and counted; any such drop is an error. Quiet and changing stretches take turns in one
//! run. The source sends no faster than frames are forwarded, so nothing else may be lost either.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use live::{Request, ask};
use serde_json::Value;

use super::changing::{apply, carried_out};
use super::counts::come;
use super::kinds::Backend;
use super::line::{Line, last_core};
use super::plan::Plan;
use super::running::start_tamis;
use super::source::Pace;
use crate::bench::document::Row;
use crate::bench::limit;
use crate::bench::rows::Rows;
use crate::oracle::netns;

const WIRE: &str = "[[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"rules.v4\"\n\
    [control]\nsocket = \"control.sock\"\n";
/// From one change to the next.
const EACH: Duration = Duration::from_millis(10);
/// Changes in all, in a whole run.
const CHANGES: f64 = 10_000.0;
/// How long frames on their way may take.
const SETTLES: Duration = Duration::from_secs(5);

/// Measures tamis alone: nobody else tells.
pub(super) fn rows(tamis: &Path, plan: Plan, out: &mut Rows) -> io::Result<()> {
    netns::in_fresh(|| {
        let line = Line::new()?;
        let by = Backend::AfPacket;
        let running = start_tamis(tamis, by, WIRE, &marking(1), last_core())?;
        running.unpin(last_core())?;
        let socket = running.folder().join("control.sock");
        let each = match plan.quick {
            true => plan.seconds(),
            false => EACH.as_secs_f64() * CHANGES / plan.runs() as f64,
        };
        let (mut quiet, mut changing, mut took) = (Vec::new(), Vec::new(), Vec::new());
        line.along(&running, 0, Pace::Behind, || {
            for _ in limit::rounds(plan.runs()) {
                quiet.push(rate(each)?);
                let (rate, of_round) = while_changing(&socket, took.len() as u64 + 2, each)?;
                changing.push(rate);
                took.extend(of_round);
            }
            Ok(())
        })?;
        settled(&socket)?;
        let a_second = took.len() as f64 / (each * plan.runs() as f64);
        let row = Row::new(by.forwarding(), "tamis", "packets/s", &changing)
            .with("changes", took.len())
            .with("changes_per_second", a_second.round());
        out.push(row.beside("tamis, quiet", &changing, &quiet));
        out.push(Row::new("live.update", "tamis", "s", &took));
        Ok(())
    })
}

/// The rules of a revision.
fn marking(number: u64) -> String {
    format!(
        "*mangle\n:PREROUTING ACCEPT [0:0]\n\
         -A PREROUTING -j MARK --set-xmark {number:#x}/0xffffffff\nCOMMIT\n\
         *filter\n:FORWARD DROP [0:0]\n-A FORWARD -m mark ! --mark {number:#x} -j DROP\n\
         -A FORWARD -j ACCEPT\nCOMMIT\n"
    )
}

/// Frames that come out in a second.
fn rate(seconds: f64) -> io::Result<f64> {
    let (since, before) = (Instant::now(), come()?);
    thread::sleep(Duration::from_secs_f64(seconds));
    Ok((come()? - before) as f64 / since.elapsed().as_secs_f64())
}

/// The same while rules change, with the seconds that each change took.
fn while_changing(socket: &Path, from: u64, seconds: f64) -> io::Result<(f64, Vec<f64>)> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let changes = scope.spawn(|| changes(socket, from, &stop));
        let rate = rate(seconds);
        stop.store(true, Ordering::Relaxed);
        let took = changes.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((rate?, took?))
    })
}

fn changes(socket: &Path, from: u64, stop: &AtomicBool) -> io::Result<Vec<f64>> {
    let mut took = Vec::new();
    let mut next = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let since = Instant::now();
        carried_out(socket, &apply(marking(from + took.len() as u64)))?;
        took.push(since.elapsed().as_secs_f64());
        next += EACH;
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(took)
}

/// Waits until no frame is on its way: all that came have left.
fn settled(socket: &Path) -> io::Result<()> {
    let until = Instant::now() + SETTLES;
    loop {
        let status = ask(socket, &Request::Status {})?.map_err(|no| io::Error::other(no.what))?;
        let wires = status["wires"].as_array().cloned().unwrap_or_default();
        let have_left = |wire: &Value| wire["received"] == wire["sent"];
        if !wires.is_empty() && wires.iter().all(have_left) {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(io::Error::other(format!("frames were lost to changes: {wires:?}")));
        }
        thread::sleep(EACH);
    }
}
