//! Stages for rulesets of the wild: devices and hosts that their rules name.

use fastrand::Rng;
use rules::model::{Family, MaskedAddr};

use super::stage::Stage;
use super::wire::Addr;
use crate::device::Device;
use crate::real::whole::Whole;

/// Hosts on each side.
const HOSTS: usize = 6;
/// Most pairs of devices for one ruleset.
pub const MOST_PAIRS: usize = 32;
/// Fewest.
pub const LEAST_PAIRS: usize = 6;

/// At least [`LEAST_PAIRS`] pairs of devices, in which each that a rule names comes up, and the usual ones.
#[must_use]
pub fn pairs(whole: &Whole, usual: [Device; 2]) -> Vec<[Device; 2]> {
    let [near, far] = &whole.devices;
    let count = LEAST_PAIRS.max(near.len() + 1).max(far.len() + 1).min(MOST_PAIRS);
    let pick = |names: &[Device], at: usize, other: Device| {
        let at = at % (names.len() + 1);
        names.get(at).copied().unwrap_or(other)
    };
    let pair = |at: usize| {
        let input = pick(near, at, usual[0]);
        // One step behind after each round, so that other pairs meet.
        let output = pick(far, at + 1 + at / (near.len() + 1), usual[1]);
        [input, if input == output { usual[1] } else { output }]
    };
    (0..count).map(pair).filter(|[input, output]| input != output).collect()
}

/// The stage between two devices, with hosts drawn among the addresses that rules name: half of them from behind
/// that device, where rules say so.
#[must_use]
pub fn stage(whole: &Whole, family: Family, devices: [Device; 2], rng: &mut Rng) -> Stage {
    let usual = Stage::usual(family).between(devices);
    let ipv6 = usual.ipv6();
    let mut hosts: [Vec<Addr>; 2] = [Vec::new(), Vec::new()];
    for side in [0, 1] {
        let own: Vec<_> =
            whole.addresses.iter().filter(|(_, behind)| *behind == Some(devices[side])).collect();
        let any: Vec<_> = whole.addresses.iter().collect();
        for turn in 0..8 * HOSTS {
            let from = if turn % 2 == 0 && !own.is_empty() { &own } else { &any };
            if from.is_empty() || hosts[side].len() == HOSTS {
                break;
            }
            let (test, _) = from[rng.usize(..from.len())];
            let host = within(test, rng);
            let is_news = !hosts[0].contains(&host) && !hosts[1].contains(&host);
            if is_news && plain(host, ipv6) {
                hosts[side].push(host);
            }
        }
        if hosts[side].is_empty() {
            hosts[side] = usual.hosts[side].clone();
        }
    }
    let bits = if ipv6 { 128 } else { 32 };
    let text = |host: &Addr| format!("{}/{bits}", super::stage::addr_text(*host, ipv6));
    let inside = hosts[0].iter().map(text).collect();
    let fronts = usual.fronts[..1].to_vec();
    Stage { inside, hosts, fronts, ..usual }
}

/// An address that the test takes, or one beside it.
fn within(test: &MaskedAddr, rng: &mut Rng) -> Addr {
    let mut host = [0; 16];
    for ((byte, addr), mask) in host.iter_mut().zip(test.addr).zip(test.mask) {
        *byte = addr | rng.u8(..) & !mask;
    }
    host
}

/// Whether the stack forwards packets from and to it.
fn plain(addr: Addr, ipv6: bool) -> bool {
    if ipv6 {
        return addr[0] & 0xe0 == 0x20;
    }
    !matches!(addr[0], 0 | 127 | 224..=255) && addr[..2] != [10, 255] && addr[4..] == [0; 12]
}
