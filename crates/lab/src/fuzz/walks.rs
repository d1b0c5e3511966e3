//! [`evaluate`]: walks of one packet at every hook.

use host::Host;
use packet::{Checksums, Link, Packet};
use rules::eval::{Alive, Memories, Observer, turns_at, walk_turn};
use rules::ipset::Sets;
use rules::model::{Family, Hook, Ruleset};
use rules::{Iface, Transit};

/// Is told of every rule and keeps none: walks that tell go further than those of [`rules::eval::Nobody`].
struct Told;

impl Observer for Told {}

/// Evaluates a packet at every hook, cut off at a few places: a bare one for IP, a frame for the others.
pub(super) fn evaluate(ruleset: &Ruleset, frame: &[u8], mut sets: Option<Sets>) {
    let host = Host::default();
    for captured in [frame.len(), frame.len() / 2] {
        let mut memories = Memories::of(ruleset);
        for hook in [
            Hook::Brouting,
            Hook::Prerouting,
            Hook::Input,
            Hook::Forward,
            Hook::Output,
            Hook::Postrouting,
        ] {
            let mut bytes = frame[..captured].to_vec();
            let mut packet = match ruleset.family {
                Family::Bridge => {
                    let headers = packet::parse_frame(&bytes, frame.len());
                    Packet::with_headers(&mut bytes, headers)
                }
                Family::Arp => {
                    Packet::parse(&mut bytes, frame.len(), Link::Ethernet, Checksums::Ignore)
                }
                _ => Packet::parse(&mut bytes, frame.len(), Link::Raw, Checksums::Ignore),
            };
            let mut transit = Transit {
                sets: sets.as_mut(),
                output: Iface::Named("eth0"),
                time: Some(1),
                ..Transit::new(&mut packet, ruleset.family, hook, &host)
            };
            for turn in turns_at(ruleset, hook) {
                walk_turn(ruleset, &turn, &mut transit, Alive::Certain, &mut memories, &mut Told);
            }
        }
    }
}
