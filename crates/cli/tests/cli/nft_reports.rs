//! Rulesets of nftables in reports: the rules to compare with, the page, recorded cases, what a listing leaves open, and
//! commands that do not know them.

use std::fs;

use crate::command::{Bench, refusal, report, stdout};
use crate::host::folder;
use crate::schemas::Schema;

/// A base chain of a table.
fn table(name: &str, priority: &str, rules: &str) -> String {
    format!(
        "table {name} {{\n\tset open {{\n\t\ttype inet_service\n\t\telements = {{ 80, 443 }}\n\t}}\n\n\
         \tchain forward {{\n\t\ttype filter hook forward priority {priority}; policy accept;\n{rules}\t}}\n}}\n"
    )
}

fn rules(more: &str) -> String {
    let rules = format!(
        "\t\ttcp dport @open counter accept comment \"<web>\"\n\t\ttcp dport 22 accept\n{more}\t\tdrop\n"
    );
    table("inet fw", "filter", &rules)
}

const PACKETS: [&str; 3] = [
    "tcp 10.0.0.4:1 > 192.0.2.1:80 syn",
    "tcp 10.0.0.4:1 > 192.0.2.1:25 syn",
    "tcp [2001:db8::4]:1 > [2001:db8::1]:25 syn",
];

#[test]
fn rules_of_nft_are_compared_with_others() {
    let bench = Bench::new();
    let old = bench.file("old.nft", rules(""));
    let new = bench.file("new.nft", rules("\t\ttcp dport 25 accept\n"));
    let capture = bench.capture("c.pcapng", &PACKETS);
    let args = ["replay", &old, &capture, "--path", "forward", "--vs", &new];
    let document = report(0, &args);
    Schema::named("tamis.replay.1").takes(&document);
    assert_eq!(document["changes"]["packets"], 2, "{}", document["changes"]);
    let told = stdout(3, &[&args[..], &["--fail-on", "change"]].concat());
    for line in [
        "drop -> accept",
        "old  L11    inet fw forward drop",
        "new  L11    inet fw forward tcp dport 25 accept",
    ] {
        assert!(told.contains(line), "no {line}\n{told}");
    }
    assert_eq!(
        report(0, &["replay", &old, &capture, "--path", "forward", "--vs", &old])["changes"]["packets"],
        0
    );
    // A migration: rules of iptables, and what they are to become.
    let before = bench.forward("rules.v4", &["-p tcp -m multiport --dports 22,80,443 -j ACCEPT"]);
    let args = ["replay", &before, &capture, "--path", "forward", "--family", "ip", "--vs"];
    assert_eq!(report(0, &[&args[..], &[&old]].concat())["changes"]["packets"], 0);
    let document = report(0, &[&args[..], &[&new]].concat());
    assert_eq!(document["changes"]["packets"], 1, "{}", document["changes"]);
}

#[test]
fn a_page_shows_rules_of_nft() {
    let bench = Bench::new();
    let text = bench.file("rules.nft", rules(""));
    let capture = bench.capture("c.pcapng", &PACKETS);
    let page = bench.path("page.html").display().to_string();
    stdout(0, &["replay", &text, &capture, "--path", "forward", "--html", &page]);
    let page = fs::read_to_string(page).unwrap();
    for shown in [
        "inet fw forward drop",
        "tcp dport @open counter accept comment &quot;&lt;web&gt;&quot;",
        "nft for IPv4",
        "nft for IPv6",
    ] {
        assert!(page.contains(shown), "no {shown}");
    }
}

/// Cases recorded under rules of nft name these, and pass; after a change some fail.
#[test]
fn cases_are_recorded_under_rules_of_nft() {
    let bench = Bench::new();
    let text = bench.file("rules.nft", rules(""));
    let capture = bench.capture("c.pcapng", &PACKETS);
    let cases = bench.path("cases.toml").display().to_string();
    stdout(0, &["test", "--record", &capture, &text, "--path", "forward", "--pin", "-o", &cases]);
    let recorded = fs::read_to_string(&cases).unwrap();
    assert!(recorded.contains("by_text = \"inet fw forward drop\""), "{recorded}");
    assert!(stdout(0, &["test", &cases]).contains("3 passed, 0 failed"));
    bench.file("rules.nft", rules("\t\ttcp dport 25 accept\n"));
    assert!(stdout(1, &["test", &cases]).contains("1 passed, 2 failed"));
}

/// Warnings of a report.
fn warnings(rules: &str, capture: &str) -> Vec<String> {
    let told = stdout(0, &["replay", rules, capture, "--path", "forward"]);
    told.lines().filter(|line| line.starts_with("warning ")).map(str::to_owned).collect()
}

#[test]
fn what_a_listing_leaves_open_is_said() {
    let bench = Bench::new();
    let capture = bench.capture("c.pcapng", &PACKETS);
    let drops = "\t\ttcp dport @open drop\n";
    let one = table("inet a", "filter", drops);
    let terse = one.replace("\t\telements = { 80, 443 }\n", "");
    let empty = "rules.nft:2: rules read a set without elements (open): nft -t, if that listed it, leaves them out";
    let tie = "rules.nft:18: chain forward of inet a and chain forward of ip b have one hook and priority";
    for (text, expected) in [
        (one.clone(), vec![]),
        (terse.clone(), vec![empty]),
        // A set that rules fill is empty at times.
        (terse.replace("inet_service\n", "inet_service\n\t\tsize 9\n\t\tflags dynamic\n"), vec![]),
        (format!("{one}{}", table("ip b", "filter", drops)), vec![tie]),
        (format!("{one}{}", table("ip b", "filter + 1", drops)), vec![]),
        // What only counts has no say in it, and no packet meets both of two families.
        (format!("{one}{}", table("ip b", "filter", "\t\tcounter\n")), vec![]),
        (format!("{}{}", one.replace("inet a", "ip6 a"), table("ip b", "filter", drops)), vec![]),
    ] {
        let file = bench.file("rules.nft", &text);
        let mut warned = warnings(&file, &capture);
        warned.retain(|warned| !warned.contains("a set that rules change is not evaluated"));
        assert_eq!(warned.len(), expected.len(), "{text}{warned:?}");
        for (warned, expected) in warned.iter().zip(expected) {
            assert!(warned.contains(expected), "{warned}");
        }
    }
}

/// Rules of iptables-nft stand in both files; a rule that was added in between stands in one.
#[test]
fn files_of_a_host_that_are_not_of_one_time_are_said() {
    let saved = "# Generated by iptables-save v1.8.9 (nf_tables) on Thu Nov 26 17:32:58 2026\n\
        *filter\n:FORWARD ACCEPT [0:0]\n:own - [0:0]\n-A FORWARD -p tcp -m tcp --dport 23 -j DROP\n[0:0] -A own\nCOMMIT\n";
    let of_iptables = "table ip filter {\n\tchain FORWARD {\n\t\ttype filter hook forward priority filter; policy accept;\n\
        \t\tmeta l4proto tcp tcp dport 23 counter packets 0 bytes 0 drop\n\t}\n\tchain own {\n\t\tcounter packets 0 bytes 0\n\t}\n}\n";
    let bench = Bench::new();
    let capture = bench.capture("c.pcapng", &PACKETS);
    let later = "\tchain own {\n\t\tcounter packets 0 bytes 0\n";
    let more = format!("{later}\t\tcounter packets 0 bytes 0\n");
    for (listing, expected) in [
        (of_iptables.to_owned(), None),
        (
            of_iptables.replace(later, &more),
            Some("has 2 rules, as saved by iptables 1: they are not of one time"),
        ),
    ] {
        let listing =
            format!("{listing}{}", rules("").replace("priority filter", "priority filter + 1"));
        let host = folder(&bench, &[("iptables.save", saved), ("rules.nft", &listing)]);
        let warned = warnings(&host, &capture);
        assert_eq!(warned.len(), usize::from(expected.is_some()), "{warned:?}");
        assert!(warned.iter().all(|warned| warned.contains(expected.unwrap())), "{warned:?}");
    }
}

/// What `iptables-nft-save` prints on a host that has nft alone is no ruleset to find nothing in.
#[test]
fn commands_that_do_not_know_nft_say_so() {
    let bench = Bench::new();
    let made_up = "# Table `nat' contains incompatible base-chains, use 'nft' tool to list them.\n\
        # Generated by iptables-save v1.8.9 (nf_tables) on Fri Nov 27 16:44:52 2026\n\
        *nat\n:PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\nCOMMIT\n";
    let nat = "table ip nat {\n\tchain post {\n\t\ttype nat hook postrouting priority srcnat; policy accept;\n\t\tmasquerade\n\t}\n}\n";
    let listing = format!("{}{nat}", rules(""));
    let host = folder(&bench, &[("iptables.save", made_up), ("rules.nft", &listing)]);
    for args in [
        &["lint", &host][..],
        &["diff", &host, &host],
        &["reach", &host, "--to", "10.0.0.1:80"],
        &["convert", &host, "--to", "json"],
    ] {
        let told = refusal(args);
        let expected =
            "expected rules of iptables, found rules of nft, which replay, why and test read";
        assert!(told.contains(expected), "{args:?}: {told}");
    }
    let text = bench.file("rules.nft", rules(""));
    assert!(refusal(&["lint", &text]).contains("found nft text"));
}
