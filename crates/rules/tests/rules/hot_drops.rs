//! Matches that drop a packet on the spot, `!` or not, what their rules count and whether they still reject.

use host::Host;
use packet::{Checksums, Link, Packet};
use rules::eval::{Alive, By, Cause, Memories, Observer, Proof, RuleRef, Verdict, Verdicts, walk};
use rules::model::{Family, Hook, Ruleset};
use rules::save::{LoadOptions, load};
use rules::{Transit, eval};

/// Hits, and what rules could not tell; it has a proof that rules match, if so.
#[derive(Default, Debug, PartialEq)]
struct Seen {
    proves: bool,
    hits: Vec<(u32, bool)>,
    unknown: Vec<(u32, Cause)>,
}

impl Observer for Seen {
    fn hit(&mut self, at: RuleRef, certain: bool, _: &Transit<'_, '_>) {
        self.hits.push((at.rule, certain));
    }

    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        self.unknown.push((at.rule, cause));
    }

    fn proof(&mut self, _: RuleRef) -> Proof {
        if self.proves { Proof::Matches } else { Proof::Nothing }
    }
}

/// What an SCTP packet meets whose chunk has no length, or as many bytes of it as were captured.
fn chunk(rules: &Ruleset, captured: usize, entry: Alive) -> (Verdicts, Seen) {
    let mut seen = Seen::default();
    (chunk_seen(rules, captured, entry, &mut seen), seen)
}

fn chunk_seen(rules: &Ruleset, captured: usize, entry: Alive, seen: &mut Seen) -> Verdicts {
    let mut bytes = vec![0x45, 0, 0, 36, 0, 0, 0, 0, 64, 132, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    bytes.extend([0, 1, 0, 2, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0]);
    let wire = bytes.len();
    let mut packet = Packet::parse(&mut bytes[..captured], wire, Link::Raw, Checksums::Ignore);
    let host = Host::default();
    let mut transit = Transit::new(&mut packet, Family::Ipv4, Hook::Forward, &host);
    walk(rules, 0, &mut transit, entry, &mut Memories::of(rules), seen)
}

fn forward(rules: &str) -> Ruleset {
    let text = format!("*filter\n:FORWARD ACCEPT [0:0]\n{rules}\nCOMMIT\n");
    load(&text, &LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() })
        .unwrap()
        .ruleset
}

const WHOLE: usize = 36;
/// The chunk was not captured.
const CUT: usize = 32;

fn by(verdicts: &Verdicts) -> [Option<By>; 3] {
    [Verdict::Accept, Verdict::Drop, Verdict::Reject].map(|each| verdicts.by(each))
}

const AT: RuleRef = RuleRef { table: 0, chain: 0, rule: 0 };
const DROPS: &str = "-A FORWARD -p sctp -m sctp --chunk-types any INIT";
const COUNTS: &str = "-A FORWARD -p sctp -m sctp ! --chunk-types any INIT";

#[test]
fn a_rule_whose_match_drops_counts_only_what_matches_all_the_same() {
    let drops = [None, Some(By::HotDrop(AT)), None];
    let rejects = [None, None, Some(By::Rule(AT))];
    for (rule, target, expected, hits) in [
        (DROPS, "", drops, &[][..]),
        (DROPS, "-j REJECT", drops, &[]),
        (COUNTS, "", drops, &[(0, true)]),
        (COUNTS, "-j ACCEPT", drops, &[(0, true)]),
        (COUNTS, "-j LOG", drops, &[(0, true)]),
        (COUNTS, "-j REJECT", rejects, &[(0, true)]),
    ] {
        let rules = forward(&format!("{rule} {target}\n-A FORWARD -p sctp"));
        let (verdicts, seen) = chunk(&rules, WHOLE, Alive::Certain);
        let expected_seen = Seen { hits: hits.to_vec(), ..Seen::default() };
        assert_eq!((by(&verdicts), seen), (expected, expected_seen), "{rule} {target}");
    }
}

#[test]
fn a_packet_that_may_not_be_there_is_not_counted_for_sure() {
    let rules = forward(&format!("{COUNTS} -j REJECT"));
    let (verdicts, seen) = chunk(&rules, WHOLE, Alive::Maybe);
    assert_eq!((by(&verdicts)[2], seen.hits), (Some(By::Rule(AT)), vec![(0, false)]));
}

#[test]
fn no_proof_is_asked_of_a_rule_that_cannot_match() {
    let mut seen = Seen { proves: true, ..Seen::default() };
    let rules = forward(&format!("{DROPS} -j ACCEPT"));
    let verdicts = chunk_seen(&rules, WHOLE, Alive::Certain, &mut seen);
    assert_eq!((by(&verdicts), seen.hits), ([None, Some(By::HotDrop(AT)), None], vec![]));
}

#[test]
fn where_the_chunk_is_not_known_all_remains_possible() {
    let policy = Some(By::Policy { table: 0, chain: 0 });
    let drop = Some(By::HotDrop(AT));
    for (target, expected) in [
        ("-j REJECT", [policy, drop, Some(By::Rule(AT))]),
        ("-j ACCEPT", [Some(By::Rule(AT)), drop, None]),
        ("-j LOG", [policy, drop, None]),
        ("", [policy, drop, None]),
    ] {
        let rules = forward(&format!("{COUNTS} {target}"));
        let (verdicts, seen) = chunk(&rules, CUT, Alive::Certain);
        assert_eq!(by(&verdicts), expected, "{target}");
        assert!(seen.hits.iter().all(|hit| *hit == (0, false)) && !seen.hits.is_empty());
        assert_eq!(seen.unknown, [(0, Cause::Match(0))], "a drop depends on it: {target}");
    }
}

#[test]
fn of_a_rule_that_only_counts_or_logs_it_is_not_told_that_it_may_match() {
    for (target, told) in [("", false), ("-j LOG", false), ("-j DROP", true), ("-j ACCEPT", true)] {
        let rules = forward(&format!("-A FORWARD -m mark --mark 1 {target}"));
        let mut bytes = vec![0x45, 0, 0, 20, 0, 0, 0, 0, 64, 9, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let mut packet = Packet::parse(&mut bytes, 20, Link::Raw, Checksums::Ignore);
        let (host, mut seen) = (Host::default(), Seen::default());
        let base = Transit::new(&mut packet, Family::Ipv4, Hook::Forward, &host);
        let mark = packet::Mark { value: 0, unknown: 1 };
        let mut transit = Transit { mark, ..base };
        eval::walk(&rules, 0, &mut transit, Alive::Certain, &mut Memories::of(&rules), &mut seen);
        assert_eq!(!seen.unknown.is_empty(), told, "{target}");
    }
}
