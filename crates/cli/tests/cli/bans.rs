//! `--bans`: the access list before the rules, with prefixes of both families and changes in time.

use crate::command::{Bench, refusal, report, stdout};

/// The word of each packet.
fn verdicts(bench: &Bench, args: &[&str]) -> String {
    let words = bench.path("words");
    let to = words.to_str().unwrap();
    stdout(0, &[&["replay"], args, &["--verdicts", to]].concat());
    std::fs::read_to_string(words).unwrap().lines().map(|word| &word[..1]).collect()
}

#[test]
fn bans_come_and_go_with_the_time_of_packets() {
    let bench = Bench::new();
    let rules = bench.forward("r.v4", &["-p udp -j ACCEPT"]);
    let packets = ["udp 198.51.100.7:53 > 10.0.0.9:4000", "udp 198.51.101.7:53 > 10.0.0.9:4000"];
    let packets: Vec<&str> = packets.into_iter().cycle().take(8).collect();
    let capture = bench.capture("c.pcapng", &packets);
    assert_eq!(verdicts(&bench, &[&rules, &capture]), "aaaaaaaa");
    let bans = "# every second packet is from another network\n\
                +2 ban 198.51.100.0/24\n\
                2026-11-21T10:00:06Z unban 198.51.100.0/25\n\
                +3 deny 198.51.101.7 10.0.0.0/8\n\
                +5.000000001 accept 0.0.0.0/0\n";
    let bans = bench.file("bans", bans);
    let args = [&*rules, &capture, "--bans", &bans];
    assert_eq!(verdicts(&bench, &args), "aaddddaa");
    let json = report(0, &[&["replay"], &args[..]].concat());
    assert_eq!(json["drop_reasons"]["denied"], 4);
    assert_eq!(json["verdicts"]["drop"]["packets"], 4);
    assert_eq!(json["hits"][0]["packets"], 4, "no rule sees what is denied");
    let text = stdout(0, &[&["replay"], &args[..], &["--list", "drop"]].concat());
    assert!(text.contains("by the access list: banned source"), "{text}");
    assert!(text.contains("by the access list: source not accepted"), "{text}");
    assert!(text.contains(&format!("--bans {bans}")), "the next command can be typed: {text}");
    let why = stdout(1, &["why", &rules, &capture, "--packet", "4", "--bans", &bans]);
    assert!(why.contains("access list: source not accepted"), "{why}");
}

#[test]
fn both_families_have_their_prefixes() {
    let bench = Bench::new();
    let v4 = bench.forward("r.v4", &["-j ACCEPT"]);
    let v6 = bench.forward("r.v6", &["-j ACCEPT"]);
    let packets = [
        "udp [2001:db8::1]:53 > [2001:db8:1::2]:4000",
        "udp [2001:db9::1]:53 > [2001:db8:1::2]:4000",
        "udp 198.51.100.7:53 > 10.0.0.9:4000",
        "arp who-has 10.0.0.1 tell 10.0.0.2",
    ];
    let capture = bench.capture("c.pcapng", &packets);
    let with = |bans: &str| {
        let bans = bench.file("bans", bans);
        verdicts(&bench, &[&v4, &capture, "--rules6", &v6, "--bans", &bans])
    };
    assert_eq!(with("- ban 2001:db8::/32\n"), "daas");
    assert_eq!(with("- ban ::/0\n- unban 2001:db9::/64\n"), "daas");
    assert_eq!(with("- deny ::/0 2001:db8:1::/48\n- ban 0.0.0.0/0\n"), "ddds");
    assert_eq!(with(""), "aaas");
}

/// A reply to a packet that was denied belongs to no connection.
#[test]
fn what_is_denied_makes_no_connection() {
    let bench = Bench::new();
    let rules = [
        "-m conntrack --ctstate NEW -s 198.51.100.7 -j ACCEPT",
        "-m conntrack --ctstate ESTABLISHED -j ACCEPT",
    ];
    let rules = bench.forward("r.v4", &rules);
    let packets = [
        "tcp 198.51.100.7:51200 > 10.0.0.9:22 syn",
        "tcp 10.0.0.9:22 > 198.51.100.7:51200 syn,ack",
    ];
    let capture = bench.capture("c.pcapng", &packets);
    let args = [&*rules, &capture, "--ct", "kernel"];
    assert_eq!(verdicts(&bench, &args), "aa");
    let bans = bench.file("bans", "- ban 198.51.100.7\n");
    assert_eq!(verdicts(&bench, &[&args[..], &["--bans", &bans]].concat()), "dd");
}

#[test]
fn a_file_that_says_something_else_is_refused_with_its_place() {
    let bench = Bench::new();
    let rules = bench.forward("r.v4", &["-j ACCEPT"]);
    let capture = bench.capture("c.pcapng", &["udp 198.51.100.7:53 > 10.0.0.9:4000"]);
    let refused = |content: &[u8]| {
        let bans = bench.file("bans", content);
        refusal(&["replay", &rules, &capture, "--bans", &bans]).replace(&bans, "FILE")
    };
    let message = refused(b"- ban 10.0.0.1\nsoon ban 10.0.0.2\n");
    assert!(message.contains("FILE:2:1: expected an RFC 3339 time, +SECONDS or -"), "{message}");
    assert!(refused(b"- ban 10.0.0.1\n- ban \xff\n").contains("FILE:2:7: expected UTF-8"));
    let missing = refusal(&["replay", &rules, &capture, "--bans", "/nowhere/bans"]);
    assert!(missing.contains("/nowhere/bans"));
}
