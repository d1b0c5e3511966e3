//! What leaves, byte by byte: tamis as a router between two ports against the kernel as one, with rules that reject,
//! mangle and translate, links of different sizes, and packets that come whole, in fragments, expired or too long.
//! Needs root and the legacy tools; without them it says so and passes.
//!
//! Everything that leaves by either device is compared from the network header on: packets that go on, their
//! fragments, resets, ICMP errors. Where tamis does not know a verdict or a byte nothing is compared, and most must be
//! known. `TAMIS_EGRESS_PACKETS` says how many packets there are, `TAMIS_ORACLE_SEED` which. A difference is shrunk.
//!
//! What the kernel draws is masked on both sides, and nothing else:
//!
//! | bytes | of | why |
//! |---|---|---|
//! | identification and header checksum | ICMP errors that the host sends | `ip_select_ident` draws; it is not 0 |
//! | identification in the fragment header | fragments of IPv6 | `ipv6_select_ident` draws anew, we keep the sender's |
//!
//! Not compared: what the host sends under a nat table for a packet of no connection (INVALID), or of one whose port
//! the kernel drew. It tracks such an error by what that quotes, and translates it if this is the inverse of a
//! translated connection.
//!
//! Set so that nothing is drawn: `net.ipv6.auto_flowlabels` 0 (labels hash a secret), limits of ICMP errors off. What
//! the host says of its groups (source `::`) is not looked at.

mod packets;
mod rulesets;
mod shrink;
mod trial;

use fastrand::Rng;
use lab::oracle::load::lacking;
use lab::oracle::netns::in_fresh;
use rules::model::Family;

use crate::setting;
use packets::Packets;
use trial::{Found, Stage, Tally};

/// Packets of one ruleset.
const PACKETS: usize = 200;

#[test]
fn what_leaves_is_what_leaves_the_kernel() {
    if let Some(reason) = lacking() {
        eprintln!("SKIPPED: {reason}");
        return;
    }
    let seed = setting("TAMIS_ORACLE_SEED", 1);
    let packets = setting("TAMIS_EGRESS_PACKETS", 12_000);
    let mut all = Tally::default();
    for number in 0..packets.div_ceil(PACKETS as u64) {
        let mut rng = Rng::with_seed(seed * 1_000_003 + number);
        let family = if number % 2 == 0 { Family::Ipv4 } else { Family::Ipv6 };
        let stage = Stage::draw(family, &mut rng);
        let mut packets = Packets::new(family, stage.mtus);
        match in_fresh(|| stage.play(|seen| Some(packets.draw(seen, &mut rng)))) {
            Ok(Found::Same(tally)) => all.add(&tally),
            Ok(Found::Differs(inputs, first)) => {
                let shrunk = shrink::shrink(stage.clone(), inputs);
                let (stage, story) = shrunk.unwrap_or((stage, first));
                panic!("seed {seed}, ruleset {number}:\n{stage}\n{story}");
            }
            Err(error) => panic!("seed {seed}, ruleset {number}: {error}\n{stage}"),
        }
    }
    println!("{all}");
    all.check();
}
