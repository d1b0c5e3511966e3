//! State that workers share: workers that take turns against a handler that sees all, and real threads against sums.

mod families;
mod threads;
mod turns;

use access::list::Schedule;
use conntrack::Mode;
use dataplane::publish::{BurstGuard, Published};
use dataplane::{Arrival, Config, FinalVerdict, Path, Start};
use packet::Link;
use packet::craft::{Addresses, Craft, Message};
use rules::ipset::Sets;
use rules::save::{LoadOptions, load};

use crate::Nobody;

const SERVER: [u8; 4] = [203, 0, 113, 9];

/// Rules of FORWARD, which drops the rest.
fn published(rules: &str, sets: &str, bans: Option<Schedule>) -> Published {
    let text = format!("*filter\n:FORWARD DROP [0:0]\n{rules}COMMIT\n");
    let ruleset = load(&text, &LoadOptions::default()).unwrap().ruleset;
    let ct = conntrack::Config { mode: Mode::Kernel, loose: false, ..conntrack::Config::default() };
    let sets = Some(Sets::parse(sets).unwrap());
    let config = Config { ct, path: Some(Path::Forward), ..Config::default() };
    Published::counting([&ruleset], config, Start { sets, bans, ..Start::default() })
}

/// A packet of a client, or for it.
fn frame(client: [u8; 4], message: Message, is_back: bool) -> Vec<u8> {
    let ends = if is_back { [SERVER, client] } else { [client, SERVER] };
    let addresses = Addresses::V4 { source: ends[0], destination: ends[1] };
    Craft { ethernet: None, ..Craft::new(addresses, message) }.frame()
}

fn arrival(number: u64, time: u64, len: usize) -> Arrival<'static> {
    Arrival { time: Some(time), ..Arrival::new(number, Link::Raw, len) }
}

/// The verdict on a packet that a worker evaluates.
fn verdict(
    burst: &mut BurstGuard<'_>,
    mut frame: Vec<u8>,
    (number, time): (u64, u64),
) -> FinalVerdict {
    let arrival = arrival(number, time, frame.len());
    burst.handle(&mut frame, &arrival, &mut Nobody).outcome.end.verdict
}
