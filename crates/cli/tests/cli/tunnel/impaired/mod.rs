//! Paths that lose, delay, reorder, repeat and damage datagrams (`netem`, tc-netem(8)), under tamis and under the kernel's
//! WireGuard, which is asked how a tunnel behaves there. `make tunnel-netem` runs them; they take minutes, and need root,
//! a kernel with both, and what [`TOOLS`] has: without, they say so and skip.
//!
//! **Order**: what comes out of a tunnel is what came to its socket, packet by packet, in that order: a tunnel holds nothing
//! back to put it in order, and takes no two out of theirs. What came twice comes out once, what was damaged never. So
//! what has to come out is known from what the network did ([`way`]), and compared as a whole.

mod events;
pub(super) mod flow;
mod overlay;
mod way;

use std::time::{Duration, Instant};

use self::overlay::{OVERLAYS, Overlay};
use self::way::{Recording, Way};
use super::hosts::{Hosts, INSIDE, INSIDE_V6};
use crate::ran::skipped;

const PACKETS: u64 = 1_500;
const INTERVAL: Duration = Duration::from_micros(2_500);
/// Bytes of a connection besides that.
const STREAM: usize = 256 << 10;
/// Handshakes are repeated each 5 s; that eight in a row fail on a path that loses a tenth is one case in 600,000.
const PATIENCE: Duration = Duration::from_secs(45);

/// What the router does to datagrams, both ways, and what of it has to be seen.
struct Impairment {
    name: &'static str,
    netem: &'static str,
    has: fn(&Seen) -> bool,
    /// UDP checksums are taken off, so that only the seal can tell what is damaged.
    without_checksums: bool,
}

const fn lossy(name: &'static str, netem: &'static str) -> Impairment {
    Impairment { name, netem, has: |seen| seen.lost > 0, without_checksums: false }
}

const TOOLS: &[&str] = &["ping", "tc", "wg", "nft", "tcpdump", "ethtool", "iptables", "conntrack"];

/// What was seen of the flow: of its packets inside the tunnel, unless a field says otherwise.
#[derive(Debug)]
struct Seen {
    /// Until the first answer, with nothing known of each other.
    first_answer: Duration,
    lost: usize,
    /// Packets that came after a later one.
    reordered: usize,
    repeated: usize,
    repeated_outside: usize,
    damaged_outside: usize,
    /// How long the connection took.
    stream: Duration,
}

impl Seen {
    fn row(&self, overlay: Overlay, name: &str) -> String {
        let percent = 100.0 * self.lost as f64 / PACKETS as f64;
        format!(
            "netem: {name} | {overlay:?} | first answer {:.2} s | lost {percent:.1} % | reordered {} | \
             repeated {} of {} | damaged {} | {} KiB of TCP {:.1} s",
            self.first_answer.as_secs_f64(),
            self.reordered,
            self.repeated,
            self.repeated_outside,
            self.damaged_outside,
            STREAM >> 10,
            self.stream.as_secs_f64(),
        )
    }
}

/// Two hosts, on a kernel that has what is needed.
fn hosts(test: &str) -> Option<Hosts> {
    let hosts = Hosts::with_tools(test, TOOLS)?;
    for (what, program, args) in [
        ("netem", "tc", &["qdisc", "add", "dev", "r1", "root", "netem", "delay", "0"][..]),
        ("WireGuard", "ip", &["link", "add", "tam", "type", "wireguard"]),
    ] {
        if hosts.routes(program, args).code != Some(0) {
            skipped(&format!("{test}: this kernel has no {what}"));
            return None;
        }
    }
    hosts.routes("ip", &["link", "del", "tam"]);
    hosts.one_by_one();
    Some(hosts)
}

/// Has the router do this to what it passes on, both ways.
fn impair(hosts: &Hosts, netem: &str) {
    for device in ["r0", "r1"] {
        let head = ["qdisc", "replace", "dev", device, "root", "netem"];
        let args: Vec<&str> = head.into_iter().chain(netem.split(' ')).collect();
        let ran = hosts.routes("tc", &args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
    }
}

fn without_checksums(hosts: &Hosts) {
    let rules = "table ip netem { chain passed { type filter hook forward priority 0; \
                 ip protocol udp udp checksum set 0; }; }";
    let ran = hosts.routes("nft", &[rules]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

fn within<T>(limit: Duration, what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(began.elapsed() < limit, "{what}: not within {limit:?}");
    }
}

/// Plays it under both.
fn comes_out_as_it_came(impairment: &Impairment) {
    for overlay in OVERLAYS {
        let Some(mut hosts) = hosts("tunnel-netem") else { return };
        let seen = behaves(&mut hosts, overlay, impairment);
        eprintln!("{}", seen.row(overlay, impairment.name));
    }
}

#[test]
#[ignore = "minutes: make tunnel-netem"]
fn a_path_that_loses() {
    comes_out_as_it_came(&lossy("loss 1 %", "loss 1%"));
    comes_out_as_it_came(&lossy("loss 10 %", "loss 10%"));
}

#[test]
#[ignore = "minutes: make tunnel-netem"]
fn a_path_that_delays_and_reorders() {
    comes_out_as_it_came(&Impairment {
        name: "delay 40 ms ± 10, reorder 25 %",
        netem: "delay 40ms 10ms reorder 25% 50%",
        has: |seen| seen.reordered > 100,
        without_checksums: false,
    });
}

#[test]
#[ignore = "minutes: make tunnel-netem"]
fn a_path_that_repeats() {
    comes_out_as_it_came(&Impairment {
        name: "duplicate 5 %",
        netem: "duplicate 5%",
        has: |seen| seen.repeated_outside > 20 && seen.lost == 0,
        without_checksums: false,
    });
}

#[test]
#[ignore = "minutes: make tunnel-netem"]
fn a_path_that_damages() {
    comes_out_as_it_came(&Impairment {
        name: "corrupt 1 %",
        netem: "corrupt 1%",
        has: |seen| seen.damaged_outside > 2 && seen.lost > 2,
        without_checksums: true,
    });
}

#[test]
#[ignore = "minutes: make tunnel-netem"]
fn a_path_that_is_slow() {
    comes_out_as_it_came(&lossy("1 Mbit/s, a queue of 8", "rate 1mbit limit 8"));
}

fn behaves(hosts: &mut Hosts, overlay: Overlay, impairment: &Impairment) -> Seen {
    impair(hosts, impairment.netem);
    if impairment.without_checksums {
        without_checksums(hosts);
    }
    let recording = Recording::begin(hosts);
    (0..2).for_each(|side| overlay.up(hosts, side, 0));
    let began = Instant::now();
    within(PATIENCE, "an answer", || hosts.pings(0, INSIDE[1], &[]).then_some(()));
    let first_answer = began.elapsed();
    within(PATIENCE, "an answer", || hosts.pings(1, INSIDE_V6[0], &[]).then_some(()));
    let sent = |hosts: &Hosts| hosts.peer(0)["sent_packets"].as_u64().unwrap();
    let before = (overlay == Overlay::Tamis).then(|| sent(hosts));
    let came = flow::run(hosts, PACKETS, INTERVAL);
    if let Some(before) = before {
        assert_eq!(sent(hosts) - before, PACKETS, "what it says it sent");
    }
    let began = Instant::now();
    hosts.transfer(0, INSIDE[1], STREAM);
    hosts.transfer(1, INSIDE_V6[0], STREAM);
    let stream = began.elapsed();
    let way = recording.end(hosts);
    let flow = way.flow(flow::SEALED);
    assert_eq!(flow.len() as u64, PACKETS, "sealed packets of the flow");
    let expected = way.expected(&flow);
    let told = (overlay == Overlay::Tamis).then(|| hosts.status(1)["wires"].to_string());
    is_same(&came, &expected, &told.unwrap_or_default());
    if overlay == Overlay::Tamis {
        adds_up(hosts, &way);
    }
    let seen = Seen {
        first_answer,
        lost: PACKETS as usize - came.len(),
        reordered: late(&came),
        repeated: came.len() - expected.len(),
        repeated_outside: way.repeated(),
        damaged_outside: way.damaged,
        stream,
    };
    assert!((impairment.has)(&seen), "the path was no such: {seen:?}");
    seen
}

/// The flow is what came of it, in the order in which that came.
#[track_caller]
fn is_same(came: &[u64], expected: &[u64], told: &str) {
    let first = came.iter().zip(expected).position(|(one, other)| one != other);
    let at = first.unwrap_or(came.len().min(expected.len()));
    let around = |list: &[u64]| list[at.saturating_sub(3)..(at + 5).min(list.len())].to_vec();
    assert!(
        came == expected,
        "{} came out and {} came, from place {at} on: {:?}, {:?} {told}",
        came.len(),
        expected.len(),
        around(came),
        around(expected)
    );
}

/// Asserts that what the second host reports of the first is what happened.
#[track_caller]
fn adds_up(hosts: &Hosts, way: &Way) {
    let peer = hosts.peer(1);
    assert_eq!(peer["lost"].as_u64(), Some(way.missing()), "datagrams that are missing");
    let status = hosts.status(1);
    // One that is damaged may have the number of another.
    let replayed = lost(&status, "tunnel_replayed");
    let repeated = way.repeated() as u64;
    assert!(
        (repeated..=repeated + way.damaged as u64).contains(&replayed),
        "{replayed} of {repeated}"
    );
    // What is damaged elsewhere than in what is sealed is not known for a datagram of the session.
    let forged = lost(&status, "tunnel_forged");
    assert!(forged <= way.damaged as u64, "{forged} of {} damaged", way.damaged);
    assert!(forged > 0 || way.damaged < 3, "none of {} damaged", way.damaged);
}

/// Packets lost for that reason, as a status has them.
fn lost(status: &serde_json::Value, reason: &str) -> u64 {
    let wires = status["wires"].as_array().unwrap();
    wires.iter().filter_map(|wire| wire["dropped"][reason].as_u64()).sum()
}

/// How many came after a later one.
fn late(numbers: &[u64]) -> usize {
    let mut greatest = 0;
    let is_late = |number: &&u64| {
        greatest = greatest.max(**number);
        **number < greatest
    };
    numbers.iter().filter(is_late).count()
}
