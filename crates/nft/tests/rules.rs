//! Rules and rulesets by hand: each prints as nft prints it, is the same through JSON, and nothing panics.

use nft::json::{Cx, Json};
use nft::model::{Family, Ruleset, Table};
use nft::text::Printer;
use proptest::prelude::*;

fn no_files(pattern: &str) -> Result<Vec<(String, String)>, String> {
    Err(format!("no file {pattern}"))
}

fn around(family: Family) -> Ruleset {
    let mut ruleset = Ruleset::default();
    ruleset.tables.push(Table::new(family, "t"));
    ruleset
}

fn printed(family: Family, text: &str) -> String {
    let rule = nft::text::parse_rule(family, text, around(family));
    let rule = rule.unwrap_or_else(|error| panic!("{text}: {error}"));
    let printer = || Printer { family, ..Printer::default() };
    let printed = nft::text::print::rule(&rule, printer());
    let again = nft::text::parse_rule(family, &printed, around(family))
        .unwrap_or_else(|e| panic!("{printed}: {e}"));
    assert_eq!(nft::text::print::rule(&again, printer()), printed, "{text}");
    let cx = Cx { family, sets: &|_| None };
    for stmt in &rule.stmts {
        let json = Json::parse(&stmt.json(&printer()).to_text()).expect("JSON");
        assert_eq!(json.statement(&cx), *stmt, "{text}: {}", json.to_text());
    }
    printed
}

/// Rules that are listed as they are written.
const SAME: &[&str] = &[
    "tcp dport 22 accept",
    "tcp dport { 22, 80-90 } counter packets 5 bytes 300 accept",
    "ip saddr 10.0.0.0/8 ip daddr != 192.168.1.1-192.168.1.9 drop",
    "ct state established,related accept",
    "ct state { established, related } accept",
    "ct status dnat accept",
    "ct original ip saddr 1.2.3.4",
    "ct mark & 0x000000ff == 0x00000001",
    "tcp flags & (syn | ack) == syn",
    "tcp flags ! fin,rst",
    "tcp option maxseg size set rt mtu",
    "tcp option sack-perm exists",
    "meta mark set ct mark & 0xffff0000 | meta mark & 0x0000ffff",
    "meta mark set ip dscp map { cs1 : 0x00000001, cs2 : 0x00000002 }",
    "ip saddr . tcp dport vmap { 10.0.0.1 . 80 : accept, 10.0.0.2 . 81-90 : jump web }",
    "ip saddr vmap { 1.1.1.1 : drop, * : goto rest }",
    "iifname \"eth*\" oifname { \"lo\", \"docker0\" } drop",
    "fib saddr . iif oif 0 drop",
    "fib daddr type local accept",
    "meta l4proto { tcp, udp } th dport 53 queue flags bypass to 1-3",
    "limit rate over 10/second burst 20 packets drop",
    "limit rate 512 kbytes/second burst 1 mbytes accept",
    "quota over 25 mbytes drop",
    "log prefix \"in: \" group 2 snaplen 64",
    "log level debug flags ip options flags skuid",
    "reject with tcp reset",
    "add @s { ip saddr timeout 1h counter }",
    "update @m { ip saddr . tcp dport limit rate 3/minute burst 5 packets }",
    "@th,160,32 0x1 drop",
    "@nh,8,8 & 0xf0 == 0x10",
    "meta hour \"09:00\"-\"17:00\" accept",
    "meta priority set 1:10",
    "numgen inc mod 2 vmap { 0 : jump a, 1 : jump b }",
    "ct mark set jhash ip saddr . tcp sport mod 4 seed 0xdeadbeef offset 1",
    "socket transparent 1 meta mark set 0x00000001",
    "ct helper set \"ftp\"",
    "counter name \"web\"",
    "synproxy mss 1460 wscale 7 timestamp sack-perm",
    "meta cgroup 5 meta skuid 0 accept",
    "reset tcp option mptcp",
    "ct count over 20 drop",
    "notrack",
];

#[test]
fn rules_are_listed_as_they_are_written() {
    for text in SAME {
        let family = if text.contains("reject") { Family::Inet } else { Family::Ip };
        let text = if text.starts_with("reject") {
            format!("ip protocol tcp {text}")
        } else {
            (*text).to_owned()
        };
        assert_eq!(printed(family, &text), text);
    }
}

#[test]
fn nft_lists_what_it_was_told_in_its_own_form() {
    for (family, text, wanted) in [
        (Family::Ip, "meta l4proto tcp tcp dport ssh", "tcp dport 22"),
        (Family::Ip, "ip protocol icmp icmp type echo-request", "icmp type echo-request"),
        (Family::Inet, "meta nfproto ipv4 ip saddr 1.2.3.4", "ip saddr 1.2.3.4"),
        (Family::Inet, "ip protocol tcp tcp dport 22", "ip protocol tcp tcp dport 22"),
        (Family::Ip, "icmp id 5", "icmp type { echo-reply, echo-request } icmp id 5"),
        (Family::Ip, "mark xor 3 == 1", "meta mark 0x00000002"),
        (Family::Ip, "ip saddr & 255.255.0.0 == 10.1.0.0", "ip saddr 10.1.0.0/16"),
        (Family::Ip, "tcp flags & (syn | ack) != 0", "tcp flags syn,ack"),
        (Family::Ip, "tcp flags syn / syn,ack", "tcp flags & (syn | ack) == syn"),
        (Family::Ip, "tcp dport { 1-5, 6-9 }", "tcp dport { 1-9 }"),
        (Family::Ip, "reject with icmp type port-unreachable", "reject"),
        (
            Family::Inet,
            "ip daddr 1.2.3.4 reject",
            "ip daddr 1.2.3.4 reject with icmp port-unreachable",
        ),
        (Family::Inet, "snat to 1.2.3.4", "snat ip to 1.2.3.4"),
        (Family::Ip, "dnat to 10.0.0.1:80-90 random", "dnat to 10.0.0.1:80-90 random"),
        (Family::Ip6, "dnat to [2001:db8::1]:80", "dnat to [2001:db8::1]:80"),
        (Family::Ip, "fib saddr . iif oif missing drop", "fib saddr . iif check missing drop"),
        (Family::Ip, "ip saddr { { 1.1.1.1 }, 2.2.2.2 }", "ip saddr { 1.1.1.1, 2.2.2.2 }"),
    ] {
        assert_eq!(printed(family, text), wanted);
    }
}

#[test]
fn files_are_applied_in_their_order() {
    let text = "#!/usr/sbin/nft -f
flush ruleset
define lan = { 10.0.0.0/8,
               192.168.0.0/16 }
define web = 80
include \"more.nft\"
table inet filter {
    set blocked { type ipv4_addr; flags interval; elements = { 1.2.3.0/24 } }
    chain input {
        type filter hook input priority filter - 5; policy drop
        ip saddr $lan tcp dport { $web, 443 } \\
            accept comment \"web\" # handle 7
        jump {
            ip saddr @blocked drop
        }
    }
}
add rule inet filter input tcp dport 22 accept
insert rule inet filter input iif lo accept
add element inet filter blocked { 9.9.9.9 }
";
    let more = |pattern: &str| Ok(vec![(pattern.to_owned(), "redefine web = 8080\n".to_owned())]);
    let ruleset = nft::text::parse("rules.nft", text, &more).expect("a ruleset");
    let rules = &ruleset.tables[0].chains[0].rules;
    assert_eq!(
        (rules[1].position.line, rules[1].position.column, rules[1].handle),
        (11, 9, Some(7))
    );
    let wanted = "table inet filter {
	set blocked {
		type ipv4_addr
		flags interval
		elements = { 1.2.3.0/24, 9.9.9.9 }
	}

	chain input {
		type filter hook input priority filter - 5; policy drop;
		iif \"lo\" accept
		ip saddr { 10.0.0.0/8, 192.168.0.0/16 } tcp dport { 8080, 443 } accept comment \"web\"
		jump {
			ip saddr @blocked drop
		}
		tcp dport 22 accept
	}
}
";
    assert_eq!(nft::text::print::ruleset(&ruleset, Printer::default()), wanted);
}

#[test]
fn errors_say_where_and_what_was_expected() {
    for (text, wanted) in [
        (
            "table ip t {\n\tchain c {\n\t\ttcp dprt 22\n",
            "f:3:7: tcp has no field dprt: expected one of",
        ),
        (
            "table ip t {\n\tchain c {\n\t\ttcp dport 70000\n",
            "f:3:13: expected a value of type inet_service instead of 70000",
        ),
        ("table ip t {\n\tset s {\n\t\ttype ipv4\n", "f:3:8: expected a type instead of ipv4"),
        ("add rule ip t c accept", "expected a table that exists"),
        (
            "table ip t {\n\tchain c {\n\t\ttcp dport { 90-80 }\n",
            "expected a range whose end is not before its beginning",
        ),
        (
            "table ip t {\n\tchain c {\n\t\tct state *\n",
            "f:3:12: expected a value of type ct_state",
        ),
        ("table ip t {\n chain c {\n $x accept\n", "f:3:2: no variable $x is defined"),
        ("define a = $a\ntable ip $a {\n", "nested too deeply"),
        (
            "table ip t {\n set s {\n type ipv4_addr\n size 5\t# count 3\n }\n}\n",
            "lacks its elements: expected a listing without -t",
        ),
        ("iptables", "expected table, chain, rule"),
        (
            "table ip t {\n chain c { accept }\n}\n",
            "f:2:19: expected ; or the end of the line instead of }",
        ),
        (
            "table ip t {\n set s { type ipv4_addr }\n}\n",
            "f:2:25: expected ; or the end of the line instead of }",
        ),
        (
            "table ip t {\n chain c { }  chain d { }\n}\n",
            "f:2:15: expected ; or the end of the line instead of chain",
        ),
        (
            "table ip t {\n chain c {\n accept counter\n",
            "f:3:9: expected the end of the rule after what ends it instead of counter",
        ),
        ("table ip t {\n chain c {\n tcp dport { }\n", "f:3:14: expected an element instead of }"),
        ("table ip t {\n chain c {\n ip ttl 300\n", "f:3:9: expected a number of 8 bits"),
        (
            "table ip t {\n chain c {\n ip version { 4, 16 }\n",
            "f:3:13: expected a number of 4 bits",
        ),
        (
            "table ip t {\n chain c {\n tcp dport { 1 : drop }\n",
            "expected elements of a set, found elements of a map",
        ),
        (
            "table ip t {\n chain c {\n type nat hook forward",
            "f:3:16: expected prerouting, input, output or postrouting",
        ),
        (
            "table ip t {\n chain c {\n type filter hook middle",
            "f:3:19: expected a hook instead of middle",
        ),
    ] {
        let error = nft::text::parse("f", text, &no_files).expect_err(text).to_string();
        assert!(error.contains(wanted), "{error}\n{wanted}");
    }
}

#[test]
fn json_of_every_release_is_read() {
    let rule = |expr: &str| {
        let text = format!(
            r#"{{"nftables": [{{"table": {{"family": "inet", "name": "t", "handle": 1}}}},
            {{"chain": {{"family": "inet", "table": "t", "name": "c", "handle": 2}}}},
            {{"rule": {{"family": "inet", "table": "t", "chain": "c", "handle": 3, "expr": {expr}}}}}]}}"#
        );
        let ruleset = nft::json::read::ruleset(&text).expect("a ruleset");
        nft::text::print::rule(&ruleset.tables[0].chains[0].rules[0], Printer::default())
    };
    let state = |right: &str| {
        rule(&format!(
            r#"[{{"match": {{"op": "in", "left": {{"ct": {{"key": "state"}}}}, "right": {right}}}}}]"#
        ))
    };
    assert_eq!(state(r#"["established", "related"]"#), "ct state established,related");
    assert_eq!(state(r#""new""#), "ct state new");
    assert_eq!(rule(r#"{"accept": null}"#), "accept");
    assert_eq!(rule(r#"[{"queue": {"num": 1, "flags": "bypass"}}]"#), "queue flags bypass to 1");
    assert_eq!(rule(r#"[{"novel": {"a": 1}}]"#), r#"unknown {"novel": {"a": 1}}"#);
    assert_eq!(rule(r#"[{"xt": {"type": "match", "name": "string"}}]"#), r#"xt match "string""#);
}

const WORDS: &[&str] = &[
    "table",
    "ip",
    "t",
    "{",
    "}",
    "chain",
    "c",
    "type",
    "filter",
    "hook",
    "input",
    "priority",
    "0",
    ";",
    "\n",
    "tcp",
    "dport",
    "22",
    "-",
    "80",
    ",",
    "accept",
    "drop",
    "ip",
    "saddr",
    "1.2.3.4",
    "/",
    "24",
    "map",
    "vmap",
    ":",
    "set",
    "elements",
    "=",
    "ipv4_addr",
    "@s",
    "counter",
    "packets",
    "ct",
    "state",
    "new",
    "meta",
    "mark",
    "&",
    "|",
    "(",
    ")",
    "0x1",
    "limit",
    "rate",
    "5",
    "second",
    "define",
    "$x",
    "x",
    "include",
    "\"f\"",
    "jump",
    "add",
    "rule",
    "element",
    ".",
    "log",
    "prefix",
    "\"p\"",
    "snat",
    "to",
    "::1",
    "[",
    "]",
    "typeof",
    "flags",
    "interval",
    "!=",
    "*",
    "\\\n",
    "#",
    "update",
    "numgen",
    "inc",
    "mod",
    "2",
    "xt",
    "vxlan",
    "<<",
    "comment",
    "handle",
    "synproxy",
    "quota",
    "tcp option",
];

proptest! {
    #[test]
    fn no_text_panics(words in proptest::collection::vec(0..WORDS.len(), 0..60)) {
        let text: Vec<&str> = words.iter().map(|at| WORDS[*at]).collect();
        let text = text.join(" ");
        for head in ["", "table ip t {\nchain c {\n"] {
            let whole = format!("{head}{text}");
            if let Ok(ruleset) = nft::text::parse("f", &whole, &no_files) {
                let printed = nft::text::print::ruleset(&ruleset, Printer::default());
                let again = nft::text::parse("p", &printed, &no_files).map(|r| nft::text::print::ruleset(&r, Printer::default()));
                prop_assert_eq!(again, Ok(printed));
            }
        }
        let _ = nft::text::parse_rule(Family::Inet, &text, around(Family::Inet));
    }

    #[test]
    fn no_bytes_panic(text in "\\PC{0,80}") {
        let _ = nft::text::parse("f", &text, &no_files);
        let _ = nft::json::read::ruleset(&text);
    }
}

#[test]
fn nesting_and_expansion_are_bounded() {
    for text in [
        format!("table ip t {{ chain c {{ ip saddr {} ", "{".repeat(100_000)),
        format!("table ip t {{ chain c {{ mark {} ", "(".repeat(100_000)),
        format!("table ip t {{ chain c {{ {} ", "vxlan ".repeat(100_000)),
        format!("table ip t {{ chain c {{ jump {} ", "{ jump ".repeat(100_000)),
        format!("table ip t {{ chain c {{ meta mark set 1 {} ", "| 1 ".repeat(100_000)),
        format!(
            "{}\n$a",
            (0..26).fold("define z = 1 2 3 4 5 6 7 8\n".to_owned(), |text, at| {
                let (name, last) = (char::from(b'y' - at % 25), char::from(b'z' - at % 25));
                format!("{text}define {name} = ${last} ${last} ${last} ${last}\n")
            })
        ),
        "[".repeat(100_000),
    ] {
        let _ = nft::text::parse("f", &text, &no_files);
        let _ = nft::json::read::ruleset(&text);
    }
}

/// nft 1.0.6 itself ends with a signal over the first.
#[test]
fn ranges_of_bits_are_numbers() {
    let text = "table ip f {\n\tset s {\n\t\ttypeof ip saddr . tcp flags\n\t\tflags interval\n\t\t\
        elements = { 10.0.0.1 . 0x50-0x5a }\n\t}\n\n\tchain c {\n\t\ttcp flags 0x2-0x10 accept\n\t}\n}\n";
    let printed = |text: &str| {
        let ruleset = nft::text::parse("t", text, &|name| Err(name.to_owned())).unwrap();
        nft::text::print::ruleset(&ruleset, nft::text::Printer::default())
    };
    assert_eq!(printed(text), text);
}

#[test]
fn elements_are_deleted_few_or_many() {
    for many in [3_u8, 200] {
        let all = |from: u8| {
            let all = (from..many).map(|last| format!("10.0.0.{last}"));
            all.collect::<Vec<_>>().join(", ")
        };
        let text = format!(
            "table ip t {{\n set s {{ type ipv4_addr; elements = {{ {} }}\n }}\n}}\ndelete element ip t s {{ {} }}\n",
            all(0),
            all(1),
        );
        let ruleset = nft::text::parse("f", &text, &no_files).expect("a ruleset");
        let printed = nft::text::print::ruleset(&ruleset, Printer::default());
        assert!(printed.contains("elements = { 10.0.0.0 }"), "{printed}");
    }
}
