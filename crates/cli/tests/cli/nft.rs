//! Rulesets of nftables as rules: text and JSON, verdicts, counters, explanations, and a host that has them.

use std::fs;

use crate::command::{Bench, refusal, report, stdout};
use crate::host::folder;
use crate::schemas::Schema;

const RULES: &str = "\
#!/usr/sbin/nft -f
flush ruleset

table inet filter {
	set admin {
		type ipv4_addr
		flags interval
		elements = { 10.0.0.0/24, 192.0.2.7 }
	}

	chain ssh {
		ip saddr @admin counter accept
		counter drop comment \"nobody else\"
	}

	chain early {
		type filter hook forward priority -150; policy accept;
		ip6 saddr fe80::/10 drop
		udp dport 53 counter packets 7 bytes 8
	}

	chain forward {
		type filter hook forward priority filter; policy drop;
		tcp dport vmap { 22 : jump ssh, 80 : accept }
		meta skuid 0 counter accept
	}
}
";

/// What decided, in the last line but hints.
fn decided(told: &str) -> &str {
    told.lines().rfind(|line| line.contains(" by ")).unwrap_or(told)
}

/// A forwarded packet of TCP.
fn tcp(source: &str, port: u16) -> String {
    format!("in=lan0 out=wan0 tcp {source}:1000 > 192.0.2.1:{port} syn path=forward")
}

/// What nft prints of the rules, as JSON.
fn json(bench: &Bench, text: &str) -> String {
    let document = stdout(0, &["convert", text, "--from", "nft", "--to", "nft-json"]);
    bench.file("rules.json", document)
}

#[test]
fn text_and_json_give_the_same_verdicts() {
    let bench = Bench::new();
    let text = bench.file("rules.nft", RULES);
    let json = json(&bench, &text);
    for (packet, code) in [
        (tcp("10.0.0.4", 22), 0),
        (tcp("10.0.1.4", 22), 1),
        (tcp("10.0.1.4", 80), 0),
        // The last rule asks for a socket, which no capture shows.
        (tcp("10.0.1.4", 81), 4),
        ("in=lan0 out=wan0 udp [fe80::1]:5 > [2001:db8::1]:53 path=forward".to_owned(), 1),
    ] {
        stdout(code, &["why", &text, "--packet", &packet]);
        stdout(code, &["why", &json, "--packet", &packet]);
    }
}

#[test]
fn a_walk_is_told_in_the_words_of_nft() {
    let bench = Bench::new();
    let text = bench.file("rules.nft", RULES);
    let told = stdout(1, &["why", &text, "--all", "--packet", &tcp("10.0.1.4", 22)]);
    let from = told.find("inet filter/early").unwrap();
    let to = told.find("next: ").unwrap();
    assert_eq!(
        told[from..to],
        *"inet filter/early
  L18    ip6 saddr fe80::/10 drop   no: meta nfproto
  L19    udp dport 53 counter packets 7 bytes 8   no: meta l4proto udp
  policy accept of inet filter early
inet filter/forward
  L24    tcp dport vmap { 22 : jump ssh, 80 : accept }   MATCH
    L12    ssh ip saddr @admin counter accept   no: ip saddr @admin
    L13    ssh counter drop comment \"nobody else\"   MATCH
DROP by L13 inet filter ssh counter drop comment \"nobody else\"
"
    );
    let told = stdout(4, &["why", &text, "--packet", &tcp("10.0.1.4", 81)]);
    assert!(told.contains("depends on L25 meta skuid"), "{told}");
    let handles = RULES.replace("counter drop comment \"nobody else\"", "counter drop # handle 9");
    let text = bench.file("handles.nft", handles);
    let told = stdout(1, &["why", &text, "--packet", &tcp("10.0.1.4", 22)]);
    assert_eq!(decided(&told), "DROP by L13 inet filter ssh counter drop # handle 9");
}

#[test]
fn counters_are_saved_in_the_language_of_the_rules() {
    let bench = Bench::new();
    let text = bench.file("rules.nft", RULES);
    let packets = [
        "tcp 10.0.0.4:1000 > 192.0.2.1:22 syn",
        "tcp 10.0.1.4:1000 > 192.0.2.1:22 syn",
        "tcp 10.0.1.4:1001 > 192.0.2.1:22 syn",
        "udp 10.0.1.4:1001 > 192.0.2.1:53",
        "udp [2001:db8::4]:1001 > [2001:db8::1]:53",
    ];
    let capture = bench.capture("c.pcapng", &packets);
    let saved = bench.path("saved").display().to_string();
    let replay = |rules: &str| {
        let args = ["replay", rules, &capture, "--path", "forward", "--save-counters", &saved];
        let document = report(0, &args);
        Schema::named("tamis.replay.1").takes(&document);
        (document, fs::read_to_string(&saved).unwrap())
    };
    let (document, counted) = replay(&text);
    for line in [
        "ip saddr @admin counter packets 1 bytes 40 accept",
        "counter packets 2 bytes 80 drop comment \"nobody else\"",
        // Of both families.
        "udp dport 53 counter packets 2 bytes 76",
    ] {
        assert!(counted.lines().any(|counted| counted.trim() == line), "no {line}\n{counted}");
    }
    let hits = document["hits"].as_array().unwrap();
    let drop = hits.iter().find(|hit| hit["chain"] == "ssh" && hit["number"] == 2).unwrap();
    let expected = "inet filter ssh counter drop comment \"nobody else\"";
    assert_eq!((&drop["text"], &drop["packets"]), (&expected.into(), &2.into()), "{drop}");
    assert_eq!((&drop["table"], &drop["line"]), (&"inet filter".into(), &13.into()), "{drop}");
    // What it wrote is read again; of JSON it is JSON.
    let again = bench.file("again.nft", &counted);
    assert_eq!(replay(&again).1, counted);
    let (_, of_json) = replay(&json(&bench, &again));
    let of_json = bench.file("again.json", of_json);
    let back = stdout(0, &["convert", &of_json, "--from", "nft-json", "--to", "nft"]);
    assert_eq!(back, counted);
}

#[test]
fn errors_name_the_line_and_the_column() {
    let bench = Bench::new();
    let refused = |name: &str, text: &str| {
        let file = bench.file(name, text);
        refusal(&["why", &file, "--packet", &tcp("10.0.0.4", 22)]).replace(&file, "FILE")
    };
    let wrong = RULES.replace("counter accept", "counter xyzzy");
    let told = refused("wrong.nft", &wrong);
    assert!(told.contains("FILE:12:27: expected a statement instead of xyzzy"), "{told}");
    let told = refused("bridge.nft", "table bridge b {\n}\n");
    assert!(told.contains("FILE: expected a table of ip, ip6 or inet, found none"), "{told}");
    let told = refused("cut.json", "{\"nftables\": [{\"table\": {");
    assert!(told.contains("FILE: "), "{told}");
}

#[test]
fn cases_name_rules_of_nft() {
    let bench = Bench::new();
    let rules = bench.file("rules.nft", RULES);
    let cases = bench.file(
        "cases.toml",
        "[[case]]\nname = \"ssh\"\npacket = \"in=lan0 out=wan0 tcp 10.0.1.4:1 > 192.0.2.1:22 syn path=forward\"\n\
         expect = \"drop\"\nby = \"inet filter/ssh/2\"\n",
    );
    let told = stdout(0, &["test", &rules, &cases]);
    assert!(told.contains("1 passed, 0 failed"), "{told}");
}

/// iptables-nft's own table stands in a listing as well, and its place tells the order of both.
#[test]
fn a_host_has_tables_of_nft_among_those_of_iptables() {
    let saved = "# Generated by iptables-save v1.8.9 (nf_tables) on Thu Nov 26 17:32:58 2026\n\
        *filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -m tcp --dport 23 -j DROP\nCOMMIT\n";
    let own = "table ip filter {\n\tchain FORWARD {\n\t\ttype filter hook forward priority filter; policy accept;\n\
        \t\tmeta l4proto tcp tcp dport 23 counter packets 0 bytes 0 drop\n\t}\n}\n";
    let native = "table inet fw {\n\tchain f {\n\t\ttype filter hook forward priority filter; policy accept;\n\
        \t\ttcp dport 23 drop\n\t}\n}\n";
    let by_iptables = "DROP by L4 -A FORWARD -p tcp -m tcp --dport 23 -j DROP";
    for (listing, by) in [
        (format!("{own}{native}"), "DROP by L10 inet fw f tcp dport 23 drop"),
        (format!("{native}{own}"), by_iptables),
    ] {
        let bench = Bench::new();
        let host = folder(&bench, &[("iptables.save", saved), ("rules.nft", &listing)]);
        let told = stdout(1, &["why", &host, "--packet", &tcp("10.0.0.4", 23)]);
        assert_eq!(decided(&told), by);
        // What is left.
        let told = stdout(1, &["why", &host, "--ignore-nft", "--packet", &tcp("10.0.0.4", 23)]);
        assert_eq!(decided(&told), by_iptables);
    }
    let bench = Bench::new();
    let host = folder(&bench, &[("rules.nft", native)]);
    let told = stdout(1, &["why", &host, "--packet", &tcp("10.0.0.4", 23)]);
    assert_eq!(decided(&told), "DROP by L4 inet fw f tcp dport 23 drop");
}

/// As collected from a gateway that has nft alone: what `iptables-nft-save` prints for a table of nft's own is no table.
#[test]
fn what_iptables_nft_prints_in_place_of_nft_s_own_table_is_none() {
    let bench = Bench::new();
    let rules = "table ip nat {\n\tchain pre {\n\t\ttype nat hook prerouting priority dstnat; policy accept;\n\
        \t\ttcp dport 80 counter packets 0 bytes 0 dnat to 10.0.0.9:8080\n\t}\n}\n";
    let saved = "# Table `nat' contains incompatible base-chains, use 'nft' tool to list them.\n\
        # Generated by iptables-save v1.8.9 (nf_tables) on Fri Nov 27 16:44:52 2026\n\
        *nat\n:PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\nCOMMIT\n";
    let host = folder(&bench, &[("rules.nft", rules), ("iptables.save", saved)]);
    let packet = "tcp 10.1.0.1:1000 > 192.0.2.1:80 syn";
    let capture = bench.capture("c.pcapng", &[packet]);
    let counted = bench.path("counted.nft").display().to_string();
    let told =
        stdout(0, &["replay", &host, &capture, "--path", "forward", "--save-counters", &counted]);
    assert!(told.contains("nft for IPv4, 1 rule in 1 chain (ip nat)"), "{told}");
    let counted = fs::read_to_string(counted).unwrap();
    assert_eq!(counted, rules.replace("packets 0 bytes 0", "packets 1 bytes 40"), "{counted}");
}

#[test]
fn tables_of_iptables_nft_alone_ask_for_their_own_text() {
    let bench = Bench::new();
    let text = bench.file(
        "xt.nft",
        "# Warning: table ip filter is managed by iptables-nft, do not touch!\ntable ip filter {\n\
         \tchain FORWARD {\n\t\ttype filter hook forward priority filter; policy accept;\n\
         \t\txt match \"statistic\" counter packets 0 bytes 0 drop\n\t}\n}\n",
    );
    let told = stdout(4, &["why", &text, "--packet", &tcp("10.0.0.4", 23)]);
    assert!(told.contains("xt match statistic") && told.contains("iptables-save"), "{told}");
}

/// Base chains of one table at one hook, in the order of the file.
fn chains(chains: &[(&str, &str)]) -> String {
    let chain = |(at, (priority, rules)): (usize, &(&str, &str))| {
        format!(
            "\tchain c{at} {{\n\t\ttype filter hook forward priority {priority}; policy accept;\n\t\t{rules}\n\t}}\n"
        )
    };
    let chains: String = chains.iter().enumerate().map(chain).collect();
    format!("table inet t {{\n{chains}}}\n")
}

/// nft(8), "VERDICT STATEMENTS"; of equal priorities the chain that was registered last runs first (measured).
#[test]
fn an_accept_ends_its_own_base_chain_and_no_other() {
    let (set, ask) = ("meta mark set 1 accept", "meta mark 1 drop");
    for (rules, code) in [
        (chains(&[("0", "accept"), ("10", "drop")]), 1),
        (chains(&[("0", "drop"), ("10", "accept")]), 1),
        (chains(&[("0", "accept"), ("10", "ip daddr 192.0.2.99 drop")]), 0),
        // The second is walked first, whichever table it is in.
        (chains(&[("0", set), ("0", ask)]), 0),
        (chains(&[("0", ask), ("0", set)]), 1),
        (chains(&[("0", ask)]) + &chains(&[("0", set)]).replace("inet t", "ip t"), 1),
        (chains(&[("0", set)]) + &chains(&[("0", ask)]).replace("inet t", "ip t"), 0),
    ] {
        let bench = Bench::new();
        let text = bench.file("rules.nft", &rules);
        stdout(code, &["why", &text, "--packet", &tcp("10.0.0.4", 80)]);
    }
}

/// What accepted a packet is the rule that did, not the policy of a chain that lets everything pass after it.
#[test]
fn a_rule_says_more_than_the_policy_of_a_chain_after_it() {
    let bench = Bench::new();
    let rules = chains(&[("0", "tcp dport 80 accept"), ("10", "counter")]);
    let text = bench.file("rules.nft", rules);
    let told = stdout(0, &["why", &text, "--packet", &tcp("10.0.0.4", 80)]);
    assert_eq!(decided(&told), "ACCEPT by L4 inet t c0 tcp dport 80 accept");
    let told = stdout(0, &["why", &text, "--packet", &tcp("10.0.0.4", 81)]);
    assert_eq!(decided(&told), "ACCEPT by L2 policy accept of inet t c0");
}

/// A filter of iptables-nft as its save tool prints it and as a listing has it, and one of iptables-legacy: both drop telnet.
fn saved(version: &str, tables: &str) -> String {
    format!(
        "# Generated by iptables-save v1.8.9{version} on Thu Nov 26 17:32:58 2026\n{tables}COMMIT\n"
    )
}

const DROPS_TELNET: &str =
    "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -m tcp --dport 23 -j DROP\n";

fn listed(table: &str, chain: &str, priority: &str) -> String {
    format!(
        "table {table} {{\n\tchain {chain} {{\n\t\ttype filter hook forward priority {priority}; policy accept;\n\
         \t\ttcp dport 23 counter packets 0 bytes 0 drop\n\t}}\n}}\n"
    )
}

/// Of equal priorities the chain that was registered last runs first: a listing tells it of nft's tables and tables of
/// iptables-nft, `registered.txt` of iptables-legacy's.
#[test]
fn three_kinds_of_rules_at_once_run_in_the_order_that_is_told() {
    let of_iptables = listed("ip filter", "FORWARD", "filter");
    let of_nft = listed("inet fw", "f", "filter");
    let early = listed("inet fw", "f", "filter - 1");
    let orders = [
        ([&of_iptables, &of_nft], "iptables.save iptables-legacy.save rules.nft", "inet fw f tcp"),
        ([&of_iptables, &of_nft], "iptables.save rules.nft iptables-legacy.save", "legacy:filter"),
        ([&of_nft, &of_iptables], "iptables-legacy.save rules.nft iptables.save", "-A FORWARD"),
        ([&of_nft, &of_iptables], "rules.nft iptables-legacy.save iptables.save", "-A FORWARD"),
        // The listing says that iptables-nft's table is older.
        ([&of_iptables, &of_nft], "rules.nft iptables-legacy.save iptables.save", ""),
        ([&of_iptables, &of_nft], "iptables.save iptables-legacy.save", ""),
        ([&of_iptables, &early], "iptables.save iptables-legacy.save", "inet fw f tcp"),
    ];
    for (listing, order, by) in orders {
        let bench = Bench::new();
        let host = folder(
            &bench,
            &[
                ("iptables.save", &*saved(" (nf_tables)", DROPS_TELNET)),
                ("iptables-legacy.save", &saved("", DROPS_TELNET)),
                ("rules.nft", &listing.map(|table| &**table).concat()),
                ("registered.txt", &order.replace(' ', "\n")),
            ],
        );
        let packet = tcp("10.0.0.4", 23);
        let told = stdout(1, &["why", &host, "--packet", &packet]);
        assert!(decided(&told).contains(by), "{order}: {told}");
        let capture = bench.capture("c.pcapng", &["tcp 10.0.0.4:1 > 192.0.2.1:23 syn"]);
        let document = report(0, &["replay", &host, &capture, "--path", "forward"]);
        Schema::named("tamis.replay.1").takes(&document);
        let has_nft =
            document["hits"].as_array().unwrap().iter().any(|hit| hit["table"] == "inet fw");
        assert_eq!(has_nft, !by.is_empty(), "{order}: {document}");
        assert_eq!(document["rules"]["third_file"].is_string(), has_nft, "{order}");
    }
}

/// A chain that lets all pass counts packets, wherever nobody can drop them before or after.
#[test]
fn idle_chains_of_iptables_legacy_count_where_nobody_else_acts() {
    let idle = "*mangle\n:FORWARD ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp\nCOMMIT\n\
                *filter\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n-A OUTPUT -p tcp\n";
    let bench = Bench::new();
    let host = folder(
        &bench,
        &[
            ("iptables.save", &*saved(" (nf_tables)", DROPS_TELNET)),
            ("iptables-legacy.save", &saved("", idle)),
        ],
    );
    let capture = bench.capture("c.pcapng", &["tcp 10.0.0.4:1 > 192.0.2.1:80 syn"]);
    let document = report(0, &["replay", &host, &capture, "--path", "forward"]);
    let policies = document["policies"].as_array().unwrap();
    let packets = |table: &str| {
        let policy = policies
            .iter()
            .find(|one| (&one["table"], &one["chain"]) == (&table.into(), &"FORWARD".into()));
        policy.map(|policy| policy["packets"].as_u64().unwrap())
    };
    // What the idle filter counts depends on whether it comes before the other one, which may drop.
    let told = ["legacy:mangle", "legacy:filter", "filter"].map(packets);
    assert_eq!(told, [Some(1), None, Some(1)], "{policies:?}");
}

/// Tables of iptables-nft of one family say nothing of the other's, though they have one name.
#[test]
fn tables_of_one_name_stand_where_those_of_their_family_do() {
    let listing = [
        listed("ip filter", "FORWARD", "filter"),
        listed("inet fw", "f", "filter"),
        listed("ip6 filter", "FORWARD", "filter"),
    ];
    let bench = Bench::new();
    let text = saved(" (nf_tables)", DROPS_TELNET);
    let files = [
        ("iptables.save", &*text),
        ("ip6tables.save", &text.replace("iptables-save", "ip6tables-save")),
        ("rules.nft", &listing.concat()),
    ];
    let host = folder(&bench, &files);
    let told = stdout(1, &["why", &host, "--packet", &tcp("10.0.0.4", 23)]);
    assert_eq!(decided(&told), "DROP by L10 inet fw f tcp dport 23 counter packets 0 bytes 0 drop");
    let six = "in=lan0 out=wan0 tcp [2001:db8::4]:1000 > [2001:db8::1]:23 syn path=forward";
    let told = stdout(1, &["why", &host, "--packet", six]);
    assert_eq!(decided(&told), "DROP by L4 -A FORWARD -p tcp -m tcp --dport 23 -j DROP");
}

/// A counter before the other tests of its rule counts what came as far.
#[test]
fn a_counter_before_tests_has_its_own_number_in_the_document() {
    let bench = Bench::new();
    let rules = chains(&[("0", "counter tcp dport 80 accept"), ("10", "tcp dport 80 counter")]);
    let text = bench.file("rules.nft", rules);
    let packets = ["tcp 10.0.0.4:1 > 192.0.2.1:80 syn", "tcp 10.0.0.4:1 > 192.0.2.1:81 syn"];
    let capture = bench.capture("c.pcapng", &packets);
    let document = report(0, &["replay", &text, &capture, "--path", "forward"]);
    Schema::named("tamis.replay.1").takes(&document);
    let hits = document["hits"].as_array().unwrap();
    let told: Vec<_> = hits
        .iter()
        .filter(|hit| hit["family"] == "ip")
        .map(|hit| (hit["packets"].as_u64(), hit["counter"]["packets"].as_u64()))
        .collect();
    assert_eq!(told, [(Some(1), Some(2)), (Some(1), None)], "{hits:?}");
}

/// What the host sent to a virtual address, a capture shows with the address that a map gave it.
#[test]
fn own_packets_may_have_been_translated_by_a_map() {
    let bench = Bench::new();
    let rules = "table ip t {\n\tmap m {\n\t\ttype inet_service : ipv4_addr . inet_service\n\
                 \t\telements = { 7080 : 10.0.0.9 . 80 }\n\t}\n\tchain out {\n\
                 \t\ttype nat hook output priority -100; policy accept;\n\
                 \t\tip daddr 192.0.2.99 counter dnat ip to tcp dport map @m\n\t}\n}\n";
    let files = [
        ("rules.nft", rules),
        ("addresses.txt", "2: eth0    inet 10.0.0.1/24 brd 10.0.0.255 scope global eth0\n"),
        (
            "links.txt",
            "2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 state UP\\    link/ether 02:00:00:00:00:01\n",
        ),
        (
            "routes.txt",
            "10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.1\n\
             local 10.0.0.1 dev eth0 table local proto kernel scope host src 10.0.0.1\n",
        ),
        ("conntrack.txt", ""),
    ];
    let host = folder(&bench, &files);
    let capture = bench.capture("c.pcapng", &["tcp 10.0.0.1:1000 > 10.0.0.9:80 syn"]);
    let document = report(0, &["replay", &host, &format!("eth0={capture}")]);
    let hit = &document["hits"][0];
    assert_eq!((&hit["packets"], &hit["maybe"]), (&0.into(), &1.into()), "{document}");
}

/// A prefix that leaves an address as it is: the source of the second flow meets that of the first there, and gets a port that nobody
/// knows. What comes to any port of it may be an answer (measured).
#[test]
fn an_answer_to_a_source_that_met_another_behind_a_prefix_is_unknown() {
    let bench = Bench::new();
    let prefix = "udp dport 53 dnat ip prefix to 198.51.100.0/24";
    let rules = format!(
        "table ip t {{\n\tchain pre {{\n\t\ttype nat hook prerouting priority dstnat; policy accept;\n\t\t{prefix}\n\t}}\n\
         \tchain fwd {{\n\t\ttype filter hook forward priority filter; policy accept;\n\
         \t\tudp sport 53 ct state new counter drop\n\t}}\n}}\n"
    );
    let text = bench.file("rules.nft", rules);
    let counted = |to: &str| {
        let packets = [
            "udp 10.0.0.5:4000 > 203.0.113.7:53",
            &format!("udp 10.0.0.5:4000 > {to}:53"),
            "udp 198.51.100.7:53 > 10.0.0.5:9999",
        ];
        let capture = bench.capture("c.pcapng", &packets);
        let document = report(0, &["replay", &text, &capture, "--path", "forward"]);
        let verdicts = &document["verdicts"];
        ["drop", "unknown"].map(|verdict| verdicts[verdict]["packets"].as_u64())
    };
    assert_eq!(counted("198.51.100.7"), [Some(0), Some(1)]);
    assert_eq!(counted("198.51.100.9"), [Some(1), Some(0)], "nobody is met there");
}
