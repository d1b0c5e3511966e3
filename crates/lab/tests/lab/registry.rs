//! Every extension that tamis evaluates has a generator, or a reason why the kernel is not asked.

use lab::generate::{matches, targets};
use rules::ext::{MATCHES, Support, TARGETS};

#[test]
fn every_evaluated_match_is_drawn_or_excused() {
    for kind in MATCHES.iter().filter(|kind| kind.support == Support::Evaluated) {
        // `oracle::arp` and `oracle::bridge` draw for the others.
        for family in kind.families.iter().filter(|family| family.is_ip()) {
            let drawn = matches::GENERATORS
                .iter()
                .any(|known| known.name == kind.name && known.families.contains(family));
            let excused = matches::SILENT.iter().any(|(name, _)| *name == kind.name);
            assert!(drawn != excused, "-m {} ({}): drawn {drawn}", kind.name, family.name());
        }
    }
}

#[test]
fn every_evaluated_target_is_drawn_or_excused() {
    for kind in TARGETS.iter().filter(|kind| kind.support == Support::Evaluated) {
        // `oracle::arp` and `oracle::bridge` draw for the others.
        for family in kind.families.iter().filter(|family| family.is_ip()) {
            let drawn = targets::GENERATORS
                .iter()
                .any(|known| known.name == kind.name && known.families.contains(family));
            let excused = targets::SILENT.iter().any(|(name, _)| *name == kind.name);
            assert!(drawn != excused, "-j {} ({}): drawn {drawn}", kind.name, family.name());
        }
    }
}
