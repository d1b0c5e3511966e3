//! Tells a known name with a slip in it from that of an extension that tamis does not know: the first is an error,
//! the second is kept as text.
//!
//! Contract: a name that tamis knows, in whichever family, is not misspelt; nor is one with another number at its end
//! (`length2`).

use super::catalogue::{MATCHES, TARGETS};
use crate::family::Family;
use host::edits;

/// Targets that exist, though other targets have similar names.
const OTHERS: [&str; 3] = ["DNETMAP", "FTOS", "VMARK"];
/// Shorter names have too many neighbours for a letter to be a slip.
const LONG_ENOUGH: usize = 4;
/// In a name of this length two letters may be.
const LONG: usize = 8;

/// The match that `name` misspells.
pub(crate) fn misspelt_match(name: &str, family: Family) -> Option<&'static str> {
    let names = |kind: &&'static super::MatchKind| std::iter::once(&kind.name).chain(kind.aliases);
    if MATCHES.iter().flat_map(names).any(|known| *known == name) {
        return None;
    }
    let here = MATCHES.iter().filter(|kind| kind.families.contains(&family));
    nearest(name, here.flat_map(names).copied())
}

/// The target or verdict that `name` misspells.
pub(crate) fn misspelt_target(name: &str, family: Family) -> Option<&'static str> {
    if OTHERS.contains(&name) || TARGETS.iter().any(|kind| kind.name == name) {
        return None;
    }
    let here = TARGETS.iter().filter(|kind| kind.families.contains(&family));
    nearest(name, ["ACCEPT", "DROP", "RETURN"].into_iter().chain(here.map(|kind| kind.name)))
}

fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let stem = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let near = known.filter_map(|known| {
        if name[..stem(name)] == known[..stem(known)] {
            return None;
        }
        let slips = edits(name, known)?;
        let allowed = match known.len() {
            0..LONG_ENOUGH => usize::from(are_same_letters(name, known)),
            LONG_ENOUGH..LONG => 1,
            LONG.. => 2,
        };
        (slips <= allowed).then_some((slips, known))
    });
    near.min_by_key(|(slips, _)| *slips).map(|(_, known)| known)
}

/// Whether both have the same letters in some order: two of them turned round are a slip in a short name, too.
fn are_same_letters(name: &str, known: &str) -> bool {
    let sorted = |name: &str| {
        let mut letters = name.to_ascii_lowercase().into_bytes();
        letters.sort_unstable();
        letters
    };
    sorted(name) == sorted(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_from_another_name() {
        let meant = |name| misspelt_match(name, Family::Ipv4);
        for (slip, known) in [
            ("contrack", "conntrack"),
            ("conntrak", "conntrack"),
            ("contrak", "conntrack"),
            ("mulitport", "multiport"),
            ("stat", "state"),
            ("upd", "udp"),
            ("TCP", "tcp"),
            ("limt", "limit"),
        ] {
            assert_eq!(meant(slip), Some(known), "{slip}");
        }
        for other in [
            "ndpi",
            "length2",
            "quota2",
            "ipp2p",
            "layer7",
            "exp",
            "psd",
            "id",
            "condition",
            "fuzzy",
            "iface",
            "ipv4options",
            "mport",
            "dstlimit",
            "iplimit",
            "connrate",
            "account",
            "pknock",
            "hl",
            "time2",
            "web",
            "\u{e9}",
            "",
        ] {
            assert_eq!(meant(other), None, "{other}");
        }
    }

    #[test]
    fn a_target_that_exists_somewhere_is_not_misspelt() {
        let meant = |name| misspelt_target(name, Family::Ipv4);
        for (slip, known) in [
            ("ACEPT", "ACCEPT"),
            ("MASQUERAD", "MASQUERADE"),
            ("accept", "ACCEPT"),
            ("DORP", "DROP"),
            ("RETRUN", "RETURN"),
            ("REJCT", "REJECT"),
        ] {
            assert_eq!(meant(slip), Some(known), "{slip}");
        }
        for other in [
            "JOOL",
            "NETFLOW",
            "RAWSNAT",
            "RAWDNAT",
            "ROUTE",
            "SAME",
            "MIRROR",
            "DNETMAP",
            "TARPIT",
            "CHAOS",
            "DELUDE",
            "DHCPMAC",
            "ECHO",
            "FULLCONENAT",
            "FLOWOFFLOAD",
            "IMQ",
            "IPMARK",
            "LOGMARK",
            "NDPI",
            "PROTO",
            "RTPENGINE",
            "SYSRQ",
            "XOR",
            "ACCOUNT",
            "NETMAP6",
            "BALANCE",
            "STEAL",
        ] {
            assert_eq!(meant(other), None, "{other}");
        }
    }
}
