//! Traces held to rules: a trace of the real nft agrees with the rules that it ran under, and with no others.

use std::process::Command;

use host::Host;
use replay::RulesFile;
use replay::walk::WalkOptions;

use crate::described::{decisions, judged, on, rules};

/// A firewall, with a chain that traces what it does.
const RULES: &str = r#"table inet trace {
	chain pre {
		type filter hook prerouting priority -350; policy accept;
		meta nftrace set 1
	}
}
table inet fw {
	set ports {
		type inet_service
		elements = { 80, 443 }
	}
	chain input {
		type filter hook input priority filter; policy drop;
		ct state established,related counter packets 7 bytes 560 accept
		iifname "lo" tcp dport { 22, 23 } counter comment "ssh"
		tcp dport vmap { 22 : jump ssh, 25 : drop }
		udp dport @ports log prefix "x " accept
		udp dport 53 limit rate 10/second jump dns
		udp dport 54 reject
	}
	chain ssh {
		counter packets 6 bytes 66 ip saddr 127.0.0.0/8 return
		accept
	}
	chain dns {
		counter packets 1 bytes 33
	}
	chain late {
		type filter hook input priority filter + 5; policy accept;
		udp dport 443 drop
	}
}
"#;

pub(crate) fn nft(text: &str) -> Vec<RulesFile> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules.nft");
    std::fs::write(&file, text).unwrap();
    WalkOptions::default().open(file.to_str().unwrap()).unwrap()
}

/// Lines of a packet to a port of the host, each in a chain and what it says there.
fn lines(protocol: &str, port: u16, passed: &[(&str, &str)]) -> String {
    let end = match protocol {
        "tcp" => "tcp flags == syn tcp window 65495",
        _ => "udp length 13",
    };
    let packet = format!(
        "packet: iif \"lo\" @ll,0,112 0x800 ip saddr 127.0.0.1 ip daddr 127.0.0.1 ip dscp cs0 ip ecn not-ect ip ttl 64 ip id \
         {port} ip protocol {protocol} ip length 60 {protocol} sport 47435 {protocol} dport {port} {end}"
    );
    let mut lines = String::new();
    for (at, (chain, what)) in passed.iter().enumerate() {
        // A chain that is jumped to shows no packet.
        let is_shown = !passed[..at].iter().any(|(before, _)| before == chain);
        if is_shown && !chain.ends_with("ssh") && !chain.ends_with("dns") {
            lines += &format!("trace id 5d{port} {chain} {packet}\n");
        }
        lines += &format!("trace id 5d{port} {chain} {what} \n");
    }
    lines
}

const SET: (&str, &str) = ("inet trace pre", "rule meta nftrace set 1 (verdict continue)");
const LET: (&str, &str) = ("inet trace pre", "policy accept");
const IN: &str = "inet fw input";
const SSH: [(&str, &str); 3] = [
    (
        IN,
        "rule iifname \"lo\" tcp dport { 22, 23 } counter packets 0 bytes 0 comment \"ssh\" (verdict continue)",
    ),
    (IN, "rule tcp dport vmap { 22 : jump ssh, 25 : drop } (verdict jump ssh)"),
    ("inet fw ssh", "rule counter packets 5 bytes 6 ip saddr 127.0.0.0/8 return (verdict return)"),
];
const DROP: (&str, &str) = (IN, "policy drop");
const WEB: (&str, &str) = (IN, "rule udp dport @ports log prefix \"x \" accept (verdict accept)");

fn ssh() -> String {
    lines("tcp", 22, &[&[SET, LET][..], &SSH, &[DROP]].concat())
}

fn decision(rules: &[RulesFile], lines: &str) -> String {
    let judged = judged(rules, &on(Host::default()), lines);
    let mut decisions = decisions(&judged);
    assert_eq!(decisions.len(), 1, "{lines}{}", judged.text());
    assert_eq!(judged.contradicted(), u64::from(decisions[0].1.contains("contradicts")));
    decisions.remove(0).1
}

#[test]
fn a_trace_agrees_with_the_rules_that_it_ran_under() {
    let rules = nft(RULES);
    for (lines, wanted) in [
        (ssh(), "DROP by L12 policy drop of inet fw input"),
        (
            lines(
                "tcp",
                25,
                &[
                    SET,
                    LET,
                    (IN, "rule tcp dport vmap { 22 : jump ssh, 25 : drop } (verdict drop)"),
                ],
            ),
            "DROP by L16",
        ),
        (lines("udp", 80, &[SET, LET, WEB, ("inet fw late", "policy accept")]), "ACCEPT by L17"),
        (lines("udp", 54, &[SET, LET, (IN, "rule udp dport 54 reject (verdict drop)")]), "REJECT"),
        (
            lines(
                "udp",
                53,
                &[
                    (IN, "rule udp dport 53 limit rate 10/second jump dns (verdict jump dns)"),
                    ("inet fw dns", "rule counter packets 0 bytes 0 (verdict continue)"),
                    DROP,
                ],
            ),
            "DROP by L12 policy drop",
        ),
        // By its state, or after the limit was spent.
        (
            lines(
                "udp",
                99,
                &[(
                    IN,
                    "rule ct state established,related counter packets 0 bytes 0 accept (verdict accept)",
                )],
            ),
            "ACCEPT by L14",
        ),
        (lines("udp", 53, &[SET, LET, DROP]), "DROP by L12"),
        // Tables that are not here, traces that end early, and rules that nft has no text for.
        (lines("udp", 80, &[("ip other c", "rule udp dport 80 (verdict accept)"), WEB]), "ACCEPT"),
        (lines("tcp", 22, &SSH[..1]), "DROP by L12 policy"),
        (lines("udp", 80, &[(IN, "unknown rule handle 9 (verdict accept)")]), "ACCEPT by L17"),
    ] {
        let decision = decision(&rules, &lines);
        assert!(decision.starts_with(wanted), "{decision}\n{lines}");
    }
}

#[test]
fn where_a_trace_and_the_rules_part_is_said() {
    let trace = |id: &str| lines("udp", 80, &[SET, LET, (IN, id)]);
    for (from, to, lines, why) in [
        ("jump ssh", "jump dns", ssh(), "a rule that its chain lacks here"),
        (
            "policy drop",
            "policy accept",
            ssh(),
            "line 8 has policy drop of inet fw input, but here",
        ),
        (
            "iifname \"lo\" tcp",
            "iifname \"eth*\" tcp",
            ssh().replace("rule iifname \"lo\"", "rule iifname \"eth*\""),
            "line 5 has inet fw input iifname \"eth*\" tcp dport { 22, 23 } counter packets 0 bytes 0 comment \"ssh\" \
             (verdict continue), which does not match the packet here: ",
        ),
        (
            "127.0.0.0/8 return",
            "127.0.0.0/8 drop",
            ssh(),
            "line 7 has inet fw ssh counter packets 5",
        ),
        (
            "\t\tiifname",
            "\t\ttcp dport 1-99 counter\n\t\tiifname",
            ssh(),
            "but here L15 inet fw input tcp dport 1-99",
        ),
        ("\t\taccept\n", "\t\taccept\n", trace("policy drop"), "to which the packet does not come"),
        ("", "", trace("rule drop (verdict drop)"), "a rule that its chain lacks here"),
        (
            "",
            "",
            lines("udp", 80, &[("ip other c", "policy drop"), WEB]),
            "policy drop of ip other c, a table that is not here",
        ),
        (
            "",
            "",
            lines("udp", 80, &[("inet fw none", "rule accept (verdict accept)")]),
            "a chain that is not here",
        ),
        (
            "",
            "",
            lines("udp", 443, &[SET, LET, WEB]),
            "udp dport 443 drop comes after what the trace has at this hook",
        ),
        (
            "",
            "",
            lines("udp", 80, &[(IN, "unknown rule handle 9 (verdict drop)"), DROP]),
            "does not come here",
        ),
    ] {
        let changed = if from.is_empty() { RULES.to_owned() } else { RULES.replace(from, to) };
        let decision = decision(&nft(&changed), &lines);
        assert!(decision.starts_with("UNKNOWN: the trace contradicts these rules"), "{decision}");
        assert!(decision.contains(why), "{why}\n{decision}");
    }
}

/// The target TRACE of iptables-legacy logs the number of each rule.
#[test]
fn lines_of_the_target_trace_are_held_to_the_rules() {
    let text = "*filter\n:INPUT DROP [0:0]\n:A - [0:0]\n-A INPUT -p udp -j A\n-A INPUT -p tcp -j ACCEPT\n\
                -A INPUT -p udp --dport 9 -j ACCEPT\n-A A -p udp --dport 9\n-A A -j RETURN\nCOMMIT\n";
    let line = |place: &str| {
        format!(
            "kernel: TRACE: {place} IN=lan0 OUT= SRC=10.0.0.5 DST=10.0.0.9 LEN=60 TOS=0x00 PREC=0x00 TTL=64 ID=7 DF \
             PROTO=UDP SPT=1 DPT=9 LEN=40\n"
        )
    };
    let of = |places: &[&str]| -> String { places.iter().map(|place| line(place)).collect() };
    let all =
        ["filter:INPUT:rule:1", "filter:A:rule:1", "filter:A:return:2", "filter:INPUT:rule:3"];
    let rules = rules(text);
    let own = decision(&rules, &of(&all));
    assert!(own.starts_with("ACCEPT by L6"), "{own}");
    for (places, why) in [
        (vec![all[0], all[2], all[3]], "but here L7 -A A -p udp -m udp --dport 9 comes before it"),
        (
            vec![all[0], all[1], all[2], "filter:INPUT:policy:4"],
            "to which the packet does not come",
        ),
        (vec![all[0], "filter:INPUT:rule:2"], "which does not match the packet here: -p tcp"),
    ] {
        let decision = decision(&rules, &of(&places));
        assert!(decision.starts_with("UNKNOWN: the trace contradicts these rules"), "{decision}");
        assert!(decision.contains(why), "{decision}");
    }
}

/// Traffic of the real kernel to its own ports; what follows the mark is what nft listed then.
const PLAYED: &str = r#"
ip link set lo up
nft -f "$1" || exit 9
stdbuf -oL nft monitor trace > "$2" &
sleep 1
bash -c '
for port in 80 53 54 99 443; do echo hello > /dev/udp/127.0.0.1/$port; done
for port in 22 25; do timeout 0.2 bash -c "echo > /dev/tcp/127.0.0.1/$port"; done
' 2> /dev/null
sleep 1
kill $!
nft list ruleset
"#;

#[test]
fn traces_of_the_real_nft_agree_with_what_it_lists() {
    let folder = tempfile::tempdir().unwrap();
    let [script, trace] = ["rules.nft", "trace.txt"].map(|name| folder.path().join(name));
    std::fs::write(&script, RULES).unwrap();
    let run = Command::new("unshare")
        .args(["-n", "sh", "-c", PLAYED, "sh"])
        .args([&script, &trace])
        .output();
    let Some(run) = run.ok().filter(|run| run.status.success()) else {
        eprintln!("SKIPPED: needs root, unshare, bash and nft");
        return;
    };
    let lines = std::fs::read_to_string(&trace).unwrap();
    let listing = String::from_utf8(run.stdout).unwrap();
    let held = judged(&nft(&listing), &on(Host::default()), &lines);
    assert!(held.packets() >= 9, "{lines}");
    assert_eq!(held.contradicted(), 0, "{}\n{lines}", held.text());
    for (from, to) in [("dport @ports", "dport 81"), ("policy drop", "policy accept")] {
        let others = judged(&nft(&listing.replace(from, to)), &on(Host::default()), &lines);
        assert!(others.contradicted() > 0, "{from}: {}\n{lines}", others.text());
    }
}
