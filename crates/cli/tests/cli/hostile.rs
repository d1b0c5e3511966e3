//! Rulesets made to hurt: each loads or is refused in one line, in memory bounded by its size.
//!
//! 512 KiB each; `TAMIS_FULL=1` makes it 16 MiB.

use std::fmt::Write;
use std::time::Instant;

use crate::ran::{CAPTURE, Ran, Scratch, confined, cramped, cramped_arenas};

/// Anonymous memory allowed for each byte of rules.
const FACTOR: usize = 64;
/// What the program needs for itself and for the steps of a story, whatever the rules.
const BASE: usize = 64 << 20;
/// What the rules need that address lists may stand for, in however short a text.
const LISTED: usize = 512 << 20;

fn size() -> usize {
    if std::env::var_os("TAMIS_FULL").is_some() { 16 << 20 } else { 1 << 19 }
}

/// Lines until the text is long enough, in a filter table.
fn table(mut line: impl FnMut(&mut String, usize)) -> String {
    let mut text = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n".to_owned();
    for index in 0.. {
        if text.len() >= size() {
            break;
        }
        line(&mut text, index);
        text.push('\n');
    }
    text + "COMMIT\n"
}

fn long(unit: &str) -> String {
    unit.repeat(size() / unit.len())
}

/// Address lists of one line that stand for a rule per pair.
fn listed(pairs: usize) -> String {
    let list = vec!["10.0.0.1"; pairs].join(",");
    format!("-A FORWARD -s {list} -d {list} -j ACCEPT")
}

/// One of the two: whether the rules must be taken, or may be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Loads,
    Refused,
    Either,
}
use Fate::{Either, Loads, Refused};

/// Chains that each jump to the next.
fn chained(link: &str) -> String {
    // Declarations and rules take about half of the text each.
    let chains = size() / 44;
    let mut text = "*filter\n:FORWARD ACCEPT [0:0]\n".to_owned();
    for chain in 0..=chains {
        writeln!(text, ":c{chain} - [0:0]").unwrap();
    }
    text.push_str("-A FORWARD -j c0\n");
    for chain in 0..chains {
        writeln!(text, "-A c{chain} {link} c{}", chain + 1).unwrap();
    }
    text + "COMMIT\n"
}

/// Forty chains that each jump twice to the next: 2^40 ways through.
fn doubling() -> String {
    let mut text = "*filter\n:FORWARD ACCEPT [0:0]\n".to_owned();
    for chain in 0..=40 {
        writeln!(text, ":c{chain} - [0:0]").unwrap();
    }
    text.push_str("-A FORWARD -j c0\n");
    for chain in 0..40 {
        let next = chain + 1;
        writeln!(text, "-A c{chain} -j c{next}\n-A c{chain} -j c{next}").unwrap();
    }
    text + "COMMIT\n"
}

fn cases() -> Vec<(&'static str, Fate, String)> {
    let rule = |rule: &str| format!("*filter\n:FORWARD ACCEPT [0:0]\n{rule}\nCOMMIT\n");
    vec![
        ("one-long-word", Refused, long("x")),
        (
            "one-long-comment",
            Refused,
            rule(&format!("-A FORWARD -m comment --comment {}", long("x"))),
        ),
        (
            "an-open-quote",
            Refused,
            rule(&format!("-A FORWARD -m comment --comment \"{}", long("x "))),
        ),
        (
            "open-quotes",
            Refused,
            table(|text, _| text.push_str("-A FORWARD -m comment --comment \"x")),
        ),
        ("only-quotes", Refused, rule(&long("\""))),
        (
            "a-rule-of-many-matches",
            Either,
            rule(&format!("-A FORWARD {}", long("-m mark --mark 1 "))),
        ),
        ("a-rule-of-bangs", Refused, rule(&format!("-A FORWARD {}", long("! ")))),
        ("unknown-words", Either, rule(&format!("-A FORWARD -m country {}", long("--x y ")))),
        ("tiny-rules", Loads, table(|text, _| text.push_str("-A FORWARD"))),
        ("chains", Loads, table(|text, i| write!(text, ":c{i} - [0:0]").unwrap())),
        (
            "a-chain-and-a-rule",
            Loads,
            table(|text, i| write!(text, ":c{i} - [0:0]\n-A c{i} -j DROP").unwrap()),
        ),
        (
            "jumps-to-no-chain",
            Refused,
            table(|text, i| write!(text, "-A FORWARD -j c{i}").unwrap()),
        ),
        ("a-chain-of-jumps", Loads, chained("-j")),
        ("a-chain-of-gotos", Loads, chained("-g")),
        ("doubling-jumps", Loads, doubling()),
        ("a-loop", Refused, chained("-j").replace("COMMIT", "-A c9 -j c0\nCOMMIT")),
        (
            "loops-nobody-reaches",
            Loads,
            table(|text, i| write!(text, ":c{i} - [0:0]\n-A c{i} -j c{i}").unwrap()),
        ),
        ("lists", Refused, rule(&listed(size() / 24))),
        ("many-lists", Either, table(|text, _| text.push_str(&listed(30)))),
        ("insertions", Either, table(|text, _| text.push_str("-I FORWARD"))),
        (
            "insertions-before-jumps",
            Refused,
            table(|text, i| write!(text, "-I FORWARD -j c{i}").unwrap()),
        ),
        ("strange-matches", Either, table(|text, i| write!(text, "-A FORWARD -m x{i}").unwrap())),
        ("tables", Loads, "*filter\nCOMMIT\n".repeat(size() / 15)),
        ("control-bytes", Refused, table(|text, _| text.push_str("\0\x1b\x7f"))),
        ("blank-lines", Refused, "\n".repeat(size())),
        (
            "ports",
            Either,
            table(|text, _| {
                text.push_str(
                    "-A FORWARD -p tcp -m multiport --dports 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
                )
            }),
        ),
    ]
}

/// What is wrong with one run, if anything.
fn wrong(fate: Fate, ran: &Ran) -> Option<String> {
    let refusal = || {
        let line = ran.err.lines().count() == 1 && ran.err.len() < 600;
        line && ran.out.is_empty() && ran.err.contains(": expected ")
    };
    let as_expected = match ran.code {
        Some(0 | 1 | 3 | 4) => fate != Refused && ran.err.is_empty(),
        Some(2) => fate != Loads && refusal(),
        _ => false,
    };
    (!as_expected).then(|| format!("{:?} {:.300}", ran.code, ran.err))
}

/// The demonstration's capture, cut to a few packets.
fn few_packets(scratch: &Scratch) -> String {
    scratch.write("few.pcap", &std::fs::read(CAPTURE).unwrap()[..400])
}

#[test]
fn hostile_rulesets_stay_within_bounds() {
    let scratch = Scratch::new("hostile");
    let capture = few_packets(&scratch);
    let mut found = Vec::new();
    for (name, fate, text) in cases() {
        let file = scratch.write(name, &text);
        let listed = if name == "many-lists" { LISTED } else { 0 };
        let kilobytes = ((size() * FACTOR + BASE + listed) / 1024) as u64;
        let why = ["why", &file, "--packet", "tcp 192.0.2.1:1025 > 192.0.2.2:80 syn"];
        for args in [
            &["replay", &file, &capture][..],
            &["replay", &file, &capture, "--json"],
            &["lint", &file],
            &["diff", &file, &file],
            &["reach", &file, "--from", "192.0.2.0/24"],
            &why,
            &[&why[..], &["--json", "--all"]].concat(),
        ] {
            let started = Instant::now();
            let ran = confined(kilobytes, args);
            let took = started.elapsed().as_millis();
            println!(
                "{name:<24} {:<6} {:?} {took:>6} ms {:.120}",
                args[0],
                ran.code,
                ran.err.trim()
            );
            found.extend(wrong(fate, &ran).map(|what| format!("{name} {args:?}: {what}")));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Rules of two address lists, which are a rule for each pair, with these tests.
fn pairs(addresses: usize, tests: &str) -> String {
    let list = |net: usize| {
        let address = |host: usize| format!("{net}.0.{}.{}", host / 250, host % 250);
        (0..addresses).map(address).collect::<Vec<_>>().join(",")
    };
    let (sources, destinations) = (list(10), list(11));
    format!(
        "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -s {sources} -d {destinations} {tests}-j DROP\nCOMMIT\n"
    )
}

/// 30 kB of rules never take a gigabyte, whatever their lists are multiplied with.
#[test]
fn address_lists_times_matches_stay_within_bounds() {
    let scratch = Scratch::new("hostile-pairs");
    let capture = few_packets(&scratch);
    let mut found = Vec::new();
    let tests = [
        String::new(),
        "-p ah ".to_owned() + &"-m ah ".repeat(60),
        "-m limit ".repeat(60),
        "-m mark --mark 1 ".repeat(60),
        "-m recent --set ".repeat(20),
        "-m string --algo bm --string a ".repeat(20),
        "-m connlimit --connlimit-above 1 ".repeat(20),
        format!("-m comment --comment {} ", "x".repeat(250)),
        format!("-m bpf --bytecode \"60,{}6 0 0 0\" ", "0 0 0 0,".repeat(59)),
    ];
    for (addresses, tests) in [1000, 700, 500, 350, 250, 170, 120, 80]
        .into_iter()
        .flat_map(|addresses| tests.iter().map(move |tests| (addresses, tests)))
    {
        let text = pairs(addresses, tests);
        assert!(text.len() < 30_000);
        let file = scratch.write("pairs.v4", &text);
        let ran = cramped(1 << 20, &["replay", &file, &capture, "--path", "forward"]);
        let product = format!("{addresses} sources x {addresses} destinations x ");
        let refused =
            ran.err.starts_with(&format!("tamis: {file}:3:")) && ran.err.contains(&product);
        if !(ran.code == Some(0) || ran.code == Some(2) && refused) {
            let tests: String = tests.chars().take(20).collect();
            found.push(format!("{addresses} x {tests}: {:?} {:.300}", ran.code, ran.err));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn threads_that_the_system_does_not_start_are_an_error() {
    let scratch = Scratch::new("threads");
    let file = scratch.write("rules.v4", "*filter\n:FORWARD DROP [0:0]\nCOMMIT\n");
    let args = ["replay", &file, CAPTURE, "--path", "forward", "-j", "255"];
    // Memory ends at another place each time: between threads, and where one starts.
    for (megabytes, arenas) in
        (200..=400).step_by(20).flat_map(|most| ["", "1", "2", "64"].map(|arenas| (most, arenas)))
    {
        let ran = cramped_arenas(megabytes << 10, arenas, &args);
        let told = format!("{megabytes} MiB, arenas {arenas:?}: {}", ran.err);
        assert_eq!(ran.code, Some(2), "{told}");
        assert!(ran.err.starts_with("tamis: -j 255: the system starts no more threads"), "{told}");
    }
}

#[test]
fn tables_for_many_threads_fit_or_are_an_error() {
    let scratch = Scratch::new("tables");
    let text =
        "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m conntrack --ctstate NEW -j ACCEPT\nCOMMIT\n";
    let file = scratch.write("rules.v4", text);
    for (threads, most) in [("128", "262144"), ("255", "262144"), ("255", "4194304")] {
        let args = ["replay", &file, CAPTURE, "--path", "forward", "-j", threads, "--ct-max", most];
        let ran = cramped(1 << 20, &args);
        let refused = ran.err.starts_with("tamis: -j ");
        assert!(
            ran.code == Some(0) || ran.code == Some(2) && refused,
            "{:?} {}",
            ran.code,
            ran.err
        );
    }
}
