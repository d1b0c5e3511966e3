//! What happens to a session, and how long traffic is away then; and a session that is replaced on a path that loses a
//! tenth.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::super::hosts::{Hosts, INSIDE};
use super::super::translated::{AFTER, BEFORE, translate};
use super::overlay::{OVERLAYS, Overlay};
use super::way::Recording;
use super::{hosts, impair, within};
use crate::ran::skipped;

/// Answers are waited for as long.
const PATIENCE: Duration = Duration::from_secs(40);
/// How long a path is cut: longer than it takes to notice.
const CUT: Duration = Duration::from_secs(20);
/// A session is replaced after 120 s; on a path that loses a tenth, an attempt fails one time in five, and is repeated after
/// 5 s.
const REPLACED: Duration = Duration::from_secs(150);
/// Answers that may be missing in a row, at two a second: nobody waits for a handshake while there is a session.
const GAP: u64 = 10;
/// Set where this machine is there for the tests alone, and its clock may be set: an emulated one.
const MAY_SET_CLOCK: &str = "TAMIS_SET_CLOCK";

/// By the next packet: before a handshake would be repeated. An emulated machine takes a second to begin to ask.
const AT_ONCE: Duration = Duration::from_secs(5);

/// What happens, and within which time traffic has to be back under tamis.
struct Event {
    name: &'static str,
    happens: fn(&mut Hosts, Overlay),
    limit: Duration,
}

const EVENTS: [Event; 5] = [
    Event {
        name: "the router gives the session another port",
        happens: |hosts, _| translate(hosts, AFTER),
        limit: AT_ONCE,
    },
    Event { name: "the path is cut for 20 s", happens: cut, limit: Duration::from_secs(8) },
    Event {
        name: "the asking end crashes and is back",
        happens: |hosts, overlay| restart(hosts, overlay, 0),
        limit: AT_ONCE,
    },
    // It does not know where the other is, which finds out by silence: 15 s.
    Event {
        name: "the other end crashes and is back",
        happens: |hosts, overlay| restart(hosts, overlay, 1),
        limit: Duration::from_secs(20),
    },
    Event {
        name: "the asking end crashes and is back with a clock of 1970",
        happens: |hosts, overlay| {
            overlay.crash(hosts, 0);
            set_clock(Duration::ZERO);
            overlay.up(hosts, 0, 0);
        },
        limit: AT_ONCE,
    },
];

fn cut(hosts: &mut Hosts, _: Overlay) {
    impair(hosts, "loss 100%");
    let until = Instant::now() + CUT;
    while Instant::now() < until {
        assert!(!hosts.pings(0, INSIDE[1], &[]), "it is cut");
    }
    impair(hosts, "delay 0");
}

fn restart(hosts: &mut Hosts, overlay: Overlay, side: usize) {
    overlay.crash(hosts, side);
    overlay.up(hosts, side, 0);
}

/// Sets this machine's clock to so long after 1970.
fn set_clock(unix: Duration) {
    let set = Command::new("date").args(["-s", &format!("@{}", unix.as_secs())]).output();
    assert!(set.unwrap().status.success());
}

#[test]
#[ignore = "minutes: make tunnel-netem"]
fn traffic_is_back() {
    for (at, event) in EVENTS.iter().enumerate() {
        let sets_clock = at + 1 == EVENTS.len();
        if sets_clock && std::env::var_os(MAY_SET_CLOCK).is_none() {
            skipped(&format!("{}: {MAY_SET_CLOCK} is not set", event.name));
            continue;
        }
        for overlay in OVERLAYS {
            let Some(mut hosts) = hosts("tunnel-back") else { return };
            translate(&hosts, BEFORE);
            (0..2).for_each(|side| overlay.up(&mut hosts, side, 0));
            within(PATIENCE, "an answer", || hosts.pings(0, INSIDE[1], &[]).then_some(()));
            let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
            let began = Instant::now();
            (event.happens)(&mut hosts, overlay);
            let took = began.elapsed();
            let back = back(&hosts);
            if sets_clock {
                set_clock(now + began.elapsed());
            }
            let told = back.map_or(format!("not within {PATIENCE:?}"), |back| {
                format!("{:.2} s", back.as_secs_f64())
            });
            eprintln!(
                "event: {} | {overlay:?} | back after {told} (it took {took:.1?})",
                event.name
            );
            let is_ours = overlay == Overlay::Tamis;
            assert!(!is_ours || back.is_some_and(|back| back < event.limit), "{}", event.name);
        }
    }
}

/// When the first answer comes, to a question each tenth of a second.
fn back(hosts: &Hosts) -> Option<Duration> {
    let began = Instant::now();
    let limit = PATIENCE.as_secs().to_string();
    let ran = hosts.does(0, "ping", &["-n", "-c", "1", "-i", "0.1", "-w", &limit, INSIDE[1]]);
    (ran.code == Some(0)).then(|| began.elapsed())
}

#[test]
#[ignore = "minutes: make tunnel-netem"]
fn a_session_is_replaced_on_a_path_that_loses_a_tenth() {
    thread::scope(|scope| {
        for (overlay, test) in OVERLAYS.into_iter().zip(["tunnel-new-w", "tunnel-new-t"]) {
            scope.spawn(move || is_replaced(overlay, test));
        }
    });
}

fn is_replaced(overlay: Overlay, test: &str) {
    let Some(mut hosts) = hosts(test) else { return };
    impair(&hosts, "loss 10%");
    let recording = Recording::begin(&hosts);
    (0..2).for_each(|side| overlay.up(&mut hosts, side, 0));
    within(PATIENCE, "an answer", || hosts.pings(0, INSIDE[1], &[]).then_some(()));
    let limit = REPLACED.as_secs().to_string();
    let ran = hosts.does(0, "ping", &["-n", "-i", "0.5", "-w", &limit, INSIDE[1]]);
    let answers: Vec<u64> = ran
        .out
        .lines()
        .filter_map(|line| line.split_once("icmp_seq=")?.1.split(' ').next()?.parse().ok())
        .collect();
    assert!(!ran.out.contains("DUP"), "an answer came twice");
    let gap = answers.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(u64::MAX);
    let sessions = recording.end(&hosts).sessions();
    eprintln!(
        "event: a session is replaced at 10 % loss | {overlay:?} | {sessions} sessions, {} of {} answered, \
         {} at most missing in a row",
        answers.len(),
        2 * REPLACED.as_secs(),
        gap - 1,
    );
    assert!(sessions >= 2, "{sessions} sessions");
    assert!(overlay != Overlay::Tamis || gap <= GAP, "{} answers are missing in a row", gap - 1);
}
