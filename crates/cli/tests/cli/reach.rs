//! `tamis reach` as a user meets it.

use crate::ran::{Scratch, fed, tamis};

const RULES: &str = "*nat
:PREROUTING ACCEPT [0:0]
-A PREROUTING -d 198.51.100.1/32 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.0.0.5:80
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -s 192.0.2.0/24 -j DROP
-A FORWARD -d 10.0.0.5/32 -p tcp -m tcp --dport 80 -j ACCEPT
-A FORWARD -i eth1 -m set --match-set guests src -j ACCEPT
COMMIT
";

/// What is shown can be asked about, and typed as it stands.
#[test]
fn a_region_has_a_packet_that_why_lets_through() {
    let scratch = Scratch::new("reach");
    let rules = scratch.write("rules", RULES.as_bytes());
    let ran = tamis(&["reach", &rules, "--to", "10.0.0.5:80/tcp", "--local", "198.51.100.1"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("sent on to 10.0.0.5:80 by line 3"), "{}", ran.out);
    assert!(ran.out.lines().count() <= 24, "{}", ran.out);
    let next = ran.out.lines().last().unwrap();
    assert!(
        next.starts_with(&format!("next: tamis why {rules} --local 198.51.100.1/32 --packet 'in=")),
        "{next}"
    );
    let shown = ran.out.lines().filter_map(|line| line.trim().strip_prefix("such as "));
    let shown: Vec<&str> = shown.filter(|packet| !packet.contains(": ")).collect();
    assert!(shown.len() >= 2, "{}", ran.out);
    for packet in shown.iter().filter(|packet| !packet.contains("ctstate=")) {
        let why = tamis(&["why", &rules, "--local", "198.51.100.1", "--packet", packet]);
        assert_eq!(why.code, Some(0), "{packet}\n{}", why.out);
    }
}

#[test]
fn exit_codes_say_whether_anything_reaches() {
    let asked = |to: &str, from: &str| {
        fed(&["reach", "-", "--to", to, "--from", from], RULES.as_bytes()).code
    };
    assert_eq!(asked("10.0.0.5:80/tcp", "203.0.113.0/24"), Some(0));
    assert_eq!(asked("10.0.0.5:80/tcp", "192.0.2.0/25"), Some(1));
    assert_eq!(asked("10.0.0.6", "203.0.113.0/24"), Some(4));
    assert_eq!(asked("10.0.0.6:http", "203.0.113.0/24"), Some(2));
    assert_eq!(asked("2001:db8::1", "203.0.113.0/24"), Some(2));
    let six = fed(&["reach", "-", "--to", "2001:db8::1"], RULES.as_bytes());
    assert!(six.refusal().contains("expected rules for the family of --to 2001:db8::1"), "{six:?}");
    assert_eq!(fed(&["reach", "-"], RULES.as_bytes()).code, Some(2));
}

#[test]
fn a_closed_way_names_what_closes_it_and_perhaps_what_tells() {
    let closed = ["reach", "-", "--to", "10.0.0.5:22/tcp", "--in", "eth0", "--path", "forward"];
    let ran = fed(&[&closed[..], &["--from", "203.0.113.0/24"]].concat(), RULES.as_bytes());
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(
        ran.out.contains("FORWARD, new connections: nothing\n    such as in=eth0 "),
        "{}",
        ran.out
    );
    assert!(ran.out.contains(": drop by line 7: policy DROP"), "{}", ran.out);
    let perhaps = fed(&["reach", "-", "--to", "10.0.0.6"], RULES.as_bytes());
    assert!(perhaps.out.contains("--match-set guests src: --ipset FILE"), "{}", perhaps.out);
}

#[test]
fn what_reaches_is_recorded_as_cases_that_pass() {
    let scratch = Scratch::new("reach-record");
    let rules = scratch.write("rules.v4", RULES.as_bytes());
    let cases = scratch.file("cases.toml");
    let args = ["reach", &rules, "--to", "10.0.0.5", "--local", "198.51.100.1", "--record", &cases];
    let ran = tamis(&args);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.lines().last().unwrap().starts_with("next: tamis test "), "{}", ran.out);
    let text = std::fs::read_to_string(&cases).unwrap();
    assert!(
        text.contains("rules = \"rules.v4\"") && text.contains("by = \"filter/FORWARD/3\""),
        "{text}"
    );
    assert_eq!(tamis(&["test", &cases]).code, Some(0), "{text}");
    let opened = RULES.replace("-s 192.0.2.0/24 -j DROP", "-j DROP");
    let changed = scratch.write("changed.v4", opened.as_bytes());
    assert_eq!(tamis(&["test", &changed, &cases]).code, Some(1), "{text}");
    // A file of cases is edited by hand: none is overwritten.
    assert_eq!(tamis(&args).code, Some(2));
}
