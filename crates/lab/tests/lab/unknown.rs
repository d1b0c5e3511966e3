//! How many verdicts stay unknown under rulesets of the wild, all of their rules included, with the networks behind
//! the interfaces given: fewer than 2 in 100. Needs `../shared/data`; without it it says so and passes.

use std::fs;
use std::path::Path;

use fastrand::Rng;
use lab::real::whole::whole;
use lab::state::evaluator::{Egress, StateEvaluator};
use lab::state::real::{pairs, stage};
use lab::state::stage::Stage;
use lab::state::talk::{Ports, Talk};
use rules::save::{LoadOptions, load};

const FILES: [&str; 6] = [
    "docker-topos4.1.save",
    "ufw-server1.save",
    "fedora27-firewalld-v4.save",
    "fedora27-firewalld-v6.save",
    "sqrl-shorewall-2014.save",
    "tum-i8-v4-2015-05-13.fixmac.save",
];
/// Packets between each pair of devices.
const PACKETS: u16 = 2000;
/// A packet each millisecond, from here on.
const START: u64 = 1_700_000_000_000_000_000;

#[test]
fn few_verdicts_are_unknown() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/rulesets");
    if !dir.exists() {
        eprintln!("SKIPPED: no {}", dir.display());
        return;
    }
    for name in FILES {
        let text = fs::read_to_string(dir.join(name)).unwrap();
        let (unknown, packets) = unknown(&text);
        let share = 100.0 * unknown as f64 / packets as f64;
        println!("{name}: {unknown} of {packets} packets unknown, {share:.2} %");
        assert!(unknown * 50 < packets, "{name}: {share:.2} % unknown");
    }
}

fn unknown(text: &str) -> (u64, u64) {
    let ruleset = load(text, &LoadOptions::default()).expect("rules").ruleset;
    let whole = whole(&ruleset);
    let (mut unknown, mut packets) = (0, 0);
    let usual = Stage::usual(ruleset.family).scene.devices;
    for (shot, devices) in pairs(&whole, usual).into_iter().enumerate() {
        let seed = shot as u64 + 1;
        let stage = stage(&whole, ruleset.family, devices, &mut Rng::with_seed(seed));
        let mut ports = Ports::usual(ruleset.translates());
        ports.servers.extend(&whole.ports);
        let config = stage.config();
        let mut evaluator = StateEvaluator::new(&ruleset, &config);
        let mut talk = Talk::new(seed, stage.clone(), ports);
        for number in 0..PACKETS {
            let sent = talk.next(number);
            let time = START + u64::from(number) * 1_000_000;
            let egress = evaluator.evaluate(&stage, &sent, time);
            unknown += u64::from(egress == Egress::Unknown);
            packets += 1;
        }
    }
    (unknown, packets)
}
