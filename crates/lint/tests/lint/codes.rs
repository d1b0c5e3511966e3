//! Each code by rules that have it, and by rules next to them that do not.

use lint::{Code, Finding, Severity, lint};

use super::{filter, ruleset};

fn found(rules: &str) -> Vec<Finding> {
    let found = lint(&filter(rules), None);
    assert_eq!((found.contradicted, found.unproven.len()), (0, 0), "{rules}");
    found.findings
}

/// Codes with the line of their rule among `rules`, from 1.
fn codes(rules: &str) -> Vec<(Code, u32)> {
    found(rules).iter().map(|finding| (finding.code, finding.line.saturating_sub(4))).collect()
}

#[test]
fn a_rule_that_rules_before_it_cover_together_is_shadowed() {
    let rules = "-A INPUT -p tcp -m tcp --dport 0:1023 -j DROP\n\
                 -A INPUT -p tcp -m tcp --dport 1024:65535 -j DROP\n\
                 -A INPUT -s 10.0.0.0/8 -p tcp -m tcp --dport 22 -j ACCEPT\n";
    let found = found(rules);
    let shadowed = found.iter().find(|finding| finding.code == Code::Shadowed).unwrap();
    assert_eq!((shadowed.line, &*shadowed.by), (7, &[5][..]), "{shadowed:?}");
    assert_eq!(shadowed.severity, Severity::Error);
    let witness = shadowed.witness.as_deref().unwrap();
    assert!(witness.contains("tcp 10.0.2.1:40000 > 198.51.100.1:22"), "{witness}");
    let one_port_less = rules.replace("1024:65535", "1024:65534").replace("-s 10.0.0.0/8 ", "");
    let one_port_less = one_port_less.replace("--dport 22", "--dport 22:65535");
    assert_eq!(codes(&one_port_less), []);
}

#[test]
fn tests_that_can_only_be_asked_are_the_same_where_their_text_is() {
    let rule = "-A INPUT -m string --string a --algo bm -j DROP\n";
    let narrower = "-A INPUT -p udp -m string --string a --algo bm -j ACCEPT\n";
    let other = narrower.replace("--string a", "--string b");
    assert_eq!(codes(&format!("{rule}{narrower}")), [(Code::Shadowed, 2)]);
    assert_eq!(codes(&format!("{rule}{other}")), []);
    // A mark that was set in between makes it another test.
    let marked = "-A INPUT -m mark --mark 0x1 -j DROP\n\
                  -A INPUT -m mark --mark 0x1 -p udp -j ACCEPT\n";
    let unset = |line| (Code::MarkUnset, line);
    assert_eq!(codes(marked), [unset(1), (Code::Shadowed, 2), unset(2)]);
}

#[test]
fn tests_that_remember_packets_shadow_nothing() {
    let limit = "-A INPUT -m limit --limit 1/sec -j ACCEPT\n";
    assert_eq!(codes(&format!("{limit}{limit}")), []);
    let random = "-A INPUT -m statistic --mode random --probability 0.5 -j DROP\n";
    assert_eq!(
        codes(&format!("{random}{random}")),
        [(Code::Redundant, 1), (Code::Redundant, 2)][2..]
    );
}

#[test]
fn after_a_rule_that_takes_everything_rules_are_unreachable() {
    let rules = "-A INPUT -j ACCEPT\n-A INPUT -s 10.0.0.1 -j DROP\n";
    let all = codes(rules);
    assert!(
        all.contains(&(Code::AcceptsAll, 1)) && all.contains(&(Code::Unreachable, 2)),
        "{all:?}"
    );
}

#[test]
fn a_jump_that_never_returns_is_named() {
    let unreachable = |chain: &str| {
        let text = format!(
            "*filter\n:INPUT ACCEPT [0:0]\n:C - [0:0]\n-A INPUT -p udp -j ACCEPT\n-A INPUT -j C\n\
             -A INPUT -s 10.0.0.1/32 -j DROP\n-A C -p tcp -j ACCEPT\n{chain}COMMIT\n"
        );
        let ruleset = rules::save::load(&text, &rules::save::LoadOptions::default());
        let found = lint(&ruleset.expect("rules").ruleset, None).findings;
        let found = found.into_iter().filter(|one| one.code == Code::Unreachable);
        found.map(|one| (one.line, one.text, one.by)).collect::<Vec<_>>()
    };
    let text = "no packet gets here: all are taken by lines 4 and 5; the jump to C at line 5 never returns";
    assert_eq!(unreachable("-A C -j DROP\n"), [(6, text.to_owned(), vec![4, 5])]);
    assert_eq!(unreachable("-A C -p icmp -j DROP\n"), []);
    assert_eq!(unreachable("-A C -s 10.0.0.2 -j RETURN\n-A C -j DROP\n"), []);
}

#[test]
fn tests_that_contradict_each_other_never_match() {
    for rule in [
        "-A INPUT -i eth0 ! -i eth+ -j DROP\n",
        "-A INPUT -p tcp -m iprange --src-range 10.0.0.1-10.0.0.2 -s 10.0.0.3 -j ACCEPT\n",
        "-A INPUT -m state --state NEW -m state --state ESTABLISHED -j ACCEPT\n",
        "-A INPUT ! -s 0.0.0.0/0 -j ACCEPT\n",
    ] {
        let text = format!("*filter\n:INPUT DROP [0:0]\n{rule}COMMIT\n");
        let Ok(loaded) = rules::save::load(&text, &rules::save::LoadOptions::default()) else {
            continue;
        };
        let found = lint(&loaded.ruleset, None).findings;
        assert_eq!(found.first().map(|one| one.code), Some(Code::NeverMatches), "{rule}{found:?}");
    }
}

#[test]
fn a_chain_only_gets_what_is_sent_to_it() {
    let rules =
        "-N TCP\n-A INPUT -p tcp -j TCP\n-A TCP -p udp -j ACCEPT\n-A TCP -o eth0 -j ACCEPT\n";
    assert_eq!(codes(rules), [(Code::NeverMatches, 3), (Code::NeverMatches, 4)]);
}

#[test]
fn what_the_policy_does_anyway_is_redundant() {
    assert_eq!(codes("-A INPUT -s 10.0.0.1 -j DROP\n"), [(Code::Redundant, 1)]);
    let logged = "-A INPUT -s 10.0.0.1 -j DROP\n-A INPUT -j LOG\n";
    assert_eq!(codes(logged), []);
    let wider = "-A INPUT -s 10.0.0.1 -j ACCEPT\n-A INPUT -s 10.0.0.0/8 -j ACCEPT\n";
    assert_eq!(codes(wider), [(Code::Redundant, 1)]);
    let between = "-A INPUT -s 10.0.0.1 -j ACCEPT\n-A INPUT -p udp -j REJECT\n-A INPUT -s 10.0.0.0/8 -j ACCEPT\n";
    assert_eq!(codes(between), []);
}

#[test]
fn chains_that_nothing_leads_to_are_unused() {
    let rules = "-N A\n-N B\n-A A -j B\n-A B -j DROP\n-N EMPTY\n-A INPUT -j EMPTY\n";
    assert_eq!(
        codes(rules),
        [(Code::UnusedChain, 1), (Code::UnusedChain, 2), (Code::IdleChain, 6)]
    );
}

#[test]
fn invalid_packets_that_were_accepted_before_are_named() {
    for asked in ["state --state", "conntrack --ctstate"] {
        let found = found(&format!(
            "-A INPUT -i lo -j ACCEPT\n-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\n\
             -A INPUT -m {asked} INVALID -j REJECT\n"
        ));
        let late = found.iter().find(|finding| finding.code == Code::LateState).unwrap();
        assert_eq!((late.line, &*late.by), (7, &[6][..]), "{asked}");
        assert!(late.witness.as_deref().unwrap().ends_with("ctstate=INVALID"));
    }
}

#[test]
fn interfaces_are_those_of_the_host() {
    let links =
        "2: eth0: <UP> mtu 1500 state UP\\    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n";
    let links = host::Links::parse(links).unwrap();
    let rules =
        "-A INPUT -i eth0 -j ACCEPT\n-A INPUT -i eth1 -j ACCEPT\n-A INPUT -i e+ -j REJECT\n";
    let found = lint(&filter(rules), Some(&links)).findings;
    let lines: Vec<u32> = found
        .iter()
        .filter(|finding| finding.code == Code::NoSuchInterface)
        .map(|finding| finding.line)
        .collect();
    assert_eq!(lines, [6]);
}

#[test]
fn ipv6_rules_are_read_alike() {
    let rules = "# Generated by ip6tables-save v1.8.9\n*filter\n:INPUT DROP [0:0]\n\
                 -A INPUT -s 2001:db8::/32 -j ACCEPT\n-A INPUT -s 2001:db8:1::/48 -p tcp -j DROP\nCOMMIT\n";
    let found = lint(&ruleset(rules), None).findings;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].code, Code::Shadowed);
    assert!(found[0].witness.as_deref().unwrap().contains("tcp [2001:db8:1:"), "{found:?}");
}

/// Chains by the ten thousand, each in the one before: too deep is said, and takes no more of the stack.
#[test]
fn jumps_within_jumps_are_followed_as_far_as_there_is_room() {
    let with = |chains: usize, rule: &str| {
        let names: String = (0..chains).map(|at| format!(":c{at} - [0:0]\n")).collect();
        let jumps: String = (1..chains).map(|at| format!("-A c{} -j c{at}\n", at - 1)).collect();
        ruleset(&format!(
            "*filter\n:INPUT DROP [0:0]\n{names}{rule}-A INPUT -j c0\n{jumps}COMMIT\n"
        ))
    };
    let nested = |chains: usize| with(chains, "");
    let (shallow, deep) = (nested(200), nested(50_000));
    assert_eq!(lint(&shallow, None).unproven.len(), 0);
    assert_eq!(lint(&deep, None).unproven, ["filter"]);
    assert_eq!(lint::diff(&deep, &deep).unwrap().compared(), lint::Compared::Same);
    for rule in ["-A INPUT -p icmp -j c0\n", "-A c49999 -p icmp -j DROP\n"] {
        let unknown = lint::diff(&deep, &with(50_000, rule)).unwrap().text();
        assert!(unknown.contains("unknown: "), "{unknown}");
    }
}

/// A port that docker publishes is open although INPUT denies it: FORWARD decides.
#[test]
fn ports_that_input_denies_and_nat_sends_elsewhere_are_named() {
    let docker = |forward: &str, input: &str| {
        let text = format!(
            "*nat\n:PREROUTING ACCEPT [0:0]\n:DOCKER - [0:0]\n\
             -A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER\n\
             -A DOCKER ! -i docker0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80\nCOMMIT\n\
             *filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n\
             {input}{forward}COMMIT\n"
        );
        let found = lint(&ruleset(&text), None);
        assert_eq!(found.contradicted, 0);
        found.findings.into_iter().find(|it| it.code == Code::PastInput)
    };
    let denies = "-A INPUT -p tcp -m tcp --dport 8080 -j DROP\n";
    let opens =
        "-A FORWARD -d 172.17.0.2/32 ! -i docker0 -o docker0 -p tcp -m tcp --dport 80 -j ACCEPT\n";
    let found = docker(opens, denies).unwrap();
    assert_eq!((found.line, &*found.by), (5, &[10, 11][..]), "{found:?}");
    let witness = found.witness.unwrap();
    assert!(witness.contains("198.51.100.1:8080 syn"), "{witness}");
    // A policy names no port; another port is another; and what FORWARD drops is not open.
    assert_eq!(docker(opens, ""), None);
    assert_eq!(docker(opens, &denies.replace("8080", "8081")), None);
    assert_eq!(docker(&opens.replace("--dport 80", "--dport 81"), denies), None);
    assert_eq!(docker(opens, &denies.replace("DROP", "ACCEPT")), None);
}

#[test]
fn sets_and_marks_that_nobody_asks_for_are_named() {
    let sets =
        "-A INPUT -m set --match-set known src -j ACCEPT\n-A INPUT -j SET --add-set seen src\n";
    assert_eq!(codes(sets), [(Code::SetUnread, 2)]);
    let host = lint::OnHost {
        sets: Some(rules::ipset::Sets::parse("create seen hash:ip family inet\n").unwrap()),
        ..lint::OnHost::default()
    };
    let found = lint::lint_on(&filter(sets), &host).findings;
    let found: Vec<(Code, u32)> = found.iter().map(|it| (it.code, it.line - 4)).collect();
    assert_eq!(found, [(Code::MissingSet, 1), (Code::SetUnread, 2)]);
    let set = "-A INPUT -i eth0 -j MARK --set-xmark 0x1/0xffffffff\n";
    assert!(codes(set).contains(&(Code::MarkUnread, 1)));
    let read = format!("{set}-A INPUT -m mark --mark 0x1 -j ACCEPT\n");
    assert_eq!(codes(&read), []);
}

#[test]
fn a_rule_that_keeps_networks_apart_is_no_error_while_there_is_one() {
    let docker = "-N STAGE-1\n-N STAGE-2\n-A FORWARD -j STAGE-1\n\
                  -A STAGE-1 -i docker0 ! -o docker0 -j STAGE-2\n-A STAGE-1 -j RETURN\n\
                  -A STAGE-2 -o docker0 -j DROP\n-A STAGE-2 -j RETURN\n";
    let of = |rules: &str| {
        let found = found(rules).into_iter().find(|finding| finding.code == Code::NeverMatches);
        found.map(|finding| (finding.severity, finding.text))
    };
    let note = "never matches as yet: the rules that lead here leave its interface out".to_owned();
    assert_eq!(of(docker), Some((Severity::Note, note)));
    let two = docker.replace(
        "-A STAGE-1 -j RETURN\n",
        "-A STAGE-1 -i br-1 ! -o br-1 -j STAGE-2\n-A STAGE-1 -j RETURN\n",
    );
    assert_eq!(of(&two), None);
    // What accepts, or asks for more, is not there for networks to come.
    for other in [
        docker.replace("docker0 -j DROP", "docker0 -j ACCEPT"),
        docker.replace("docker0 -j DROP", "docker0 -p udp -j DROP"),
    ] {
        assert_eq!(of(&other).map(|(severity, _)| severity), Some(Severity::Error), "{other}");
    }
}

#[test]
fn a_rule_whose_mark_others_have_set_otherwise_never_matches_and_names_them() {
    let rules = "-A FORWARD -j MARK --set-xmark 0x2/0xffffffff\n\
                 -A FORWARD -m mark --mark 0x1 -j DROP\n\
                 -A FORWARD -m mark --mark 0x2 -j ACCEPT\n";
    let text = format!("*mangle\n:FORWARD ACCEPT [0:0]\n{rules}COMMIT\n");
    let found = lint(&super::ruleset(&text), None).findings;
    let never: Vec<_> = found.iter().filter(|it| it.code == Code::NeverMatches).collect();
    let [never] = never.as_slice() else { panic!("{found:?}") };
    assert_eq!((never.line, never.by.as_slice()), (4, &[3][..]));
    assert_eq!(never.text, "never matches: what it tests is changed by line 3");
    assert!(found.iter().all(|it| !it.text.contains("no line")), "{found:?}");
}

#[test]
fn a_last_commit_without_a_newline_is_an_error_where_legacy_tools_load_it() {
    let text = "*filter\n:INPUT ACCEPT [0:0]\nCOMMIT";
    let found = lint::lint_text(text, &super::ruleset(text)).unwrap();
    assert_eq!((found.code, found.severity, found.line), (Code::OpenCommit, Severity::Error, 3));
    for taken in [format!("{text}\n"), format!("{text}\n# x")] {
        assert_eq!(lint::lint_text(&taken, &super::ruleset(&taken)), None);
    }
    let nft = format!("# Generated by iptables-save v1.8.9 (nf_tables) on x\n{text}");
    assert_eq!(lint::lint_text(&nft, &super::ruleset(&nft)), None);
}

/// More pairs of rules than findings name: what a rule is found for does not depend on how many others there are.
#[test]
fn a_finding_is_the_same_however_many_there_are() {
    const RULES: usize = 2_200;
    let accepts: String =
        (1..=RULES).map(|port| format!("-A FORWARD -p tcp --dport {port} -j ACCEPT\n")).collect();
    let dead: String = (0..RULES)
        .map(|n| format!("-A C -p tcp --dport 1:{RULES} -m comment --comment c{n} -j ACCEPT\n"))
        .collect();
    let rules = format!(
        "*filter\n:FORWARD ACCEPT [0:0]\n:C - [0:0]\n{accepts}-A FORWARD -j C\n{dead}COMMIT\n"
    );
    let found = lint(&ruleset(&rules), None);
    let shadowed = found.findings.iter().filter(|finding| finding.code == Code::Shadowed);
    assert_eq!(shadowed.count(), RULES);
    assert!(found.findings.iter().all(|finding| finding.severity != Severity::Error));
}

/// What is too much to follow is said, not passed over.
#[test]
fn published_ports_that_are_too_many_are_said_to_be() {
    let of = |ports: usize| {
        let denies: String =
            (1..=ports).map(|port| format!("-A INPUT -p tcp --dport {port} -j DROP\n")).collect();
        let sends: String = (1..=ports)
            .map(|port| {
                format!(
                    "-A PREROUTING -p tcp --dport {port} -j DNAT --to-destination 10.0.{}.{}:80\n",
                    port >> 8,
                    port & 255
                )
            })
            .collect();
        let rules = format!(
            "*nat\n:PREROUTING ACCEPT [0:0]\n{sends}COMMIT\n*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n\
             -A FORWARD -j ACCEPT\n{denies}COMMIT\n"
        );
        let found = lint(&ruleset(&rules), None);
        let open = found.findings.iter().filter(|finding| finding.code == Code::PastInput).count();
        (open, found.unproven)
    };
    assert_eq!(of(50), (50, Vec::new()));
    assert_eq!(of(4_000), (0, vec!["nat".to_owned()]));
}
