//! The translators with each other: what is written is read as the same rules, for programs of both widths, and what is
//! damaged is an error. The kernel is asked in `tests/kernel/blobs.rs`.

use rules::model::Ruleset;
use rules::save::{self, LoadOptions, print_ruleset};

use super::*;

const RULES: [(Family, &str); 3] = [
    (Family::Ipv4, include_str!("rules.v4")),
    (Family::Ipv6, include_str!("rules.v6")),
    (Family::Arp, include_str!("rules.arp")),
];

fn loaded(family: Family, text: &str) -> Ruleset {
    let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
    save::load(text, &options).unwrap().ruleset
}

fn text(ruleset: &Ruleset) -> String {
    print_ruleset(ruleset, true, |table, chain, rule| ruleset.counters(table, chain, rule))
}

#[test]
fn what_is_written_is_read_as_the_same_rules() {
    for (family, rules) in RULES {
        let ruleset = loaded(family, rules);
        for width in [Width::Bits64, Width::Bits32] {
            let read: Vec<_> =
                write(&ruleset, width).unwrap().iter().map(|blob| read(blob).unwrap()).collect();
            let said: String = read.iter().map(text).collect();
            assert_eq!(said, text(&ruleset), "{width:?}");
        }
    }
}

#[test]
fn structs_of_32_bits_are_shorter_where_eight_bytes_begin_at_four() {
    let rules = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m limit --limit 1/sec -j ACCEPT\nCOMMIT\n";
    let lens = |family| {
        let ruleset = loaded(family, rules);
        [Width::Bits64, Width::Bits32].map(|width| write(&ruleset, width).unwrap()[0].entries.len())
    };
    // Three entries, one match, two verdicts, one name.
    assert_eq!(lens(Family::Ipv4), [3 * 112 + 72 + 2 * 40 + 64, 3 * 112 + 60 + 2 * 36 + 64]);
    assert_eq!(lens(Family::Ipv6), [3 * 168 + 72 + 2 * 40 + 64, 3 * 164 + 60 + 2 * 36 + 64]);
}

#[test]
fn what_is_not_translated_is_told() {
    for rule in ["-m length --length 5", "-m ttl --ttl-eq 5", "-j DSCP --set-dscp 0x05"] {
        let ruleset = loaded(
            Family::Ipv4,
            &format!("*mangle\n:INPUT ACCEPT [0:0]\n-A INPUT {rule}\nCOMMIT\n"),
        );
        let found = write(&ruleset, Width::Bits64).unwrap_err();
        assert!(found.starts_with("INPUT 1: ") && found.ends_with("not translated"), "{found}");
    }
}

#[test]
fn a_damaged_table_is_an_error_or_other_rules() {
    let mut random = fastrand::Rng::with_seed(46);
    for (family, rules) in RULES {
        for blob in write(&loaded(family, rules), Width::Bits64).unwrap() {
            for len in (0..blob.entries.len()).step_by(8) {
                let cut = Blob { entries: blob.entries[..len].to_vec(), ..blob.clone() };
                assert!(read(&cut).is_err(), "cut at {len}");
            }
            for _ in 0..500 {
                let mut damaged = blob.clone();
                for _ in 0..random.usize(1..4) {
                    let at = random.usize(..damaged.entries.len());
                    damaged.entries[at] = random.u8(..);
                }
                let _ = read(&damaged);
            }
        }
    }
}
