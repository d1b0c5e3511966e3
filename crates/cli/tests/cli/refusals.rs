//! Every way to be refused is one line on standard error, with the place, and exit code 2.

use crate::ran::{CAPTURE, RULES, Scratch, tamis};

#[test]
fn rules_are_refused_at_file_line_and_column() {
    let scratch = Scratch::new("refused-rules");
    let cases: &[(&str, &[u8], &str, &str)] = &[
        ("prompt.v4", b"root@fw:~# iptables-save\n*filter\n", "1:1", "a shell prompt"),
        ("latin1.v4", b"*filter\n:INPUT DROP [0:0]\n# caf\xe9\n", "3:6", "UTF-8"),
        ("chain.v4", b"*filter\n-A nowhere -j DROP\nCOMMIT\n", "2:4", "\"nowhere\""),
        ("option.v4", b"*filter\n-A INPUT --nonsense 3\nCOMMIT\n", "2:10", "--nonsense"),
        ("quote.v4", b"*filter\n-A INPUT -m comment --comment \"x\nCOMMIT\n", "2:31", "quote"),
        ("commit.v4", b"*filter\n:INPUT DROP [0:0]\n", "3:1", "COMMIT"),
        ("nft.v4", b"table ip filter {\n chain x { nonsense }\n}\n", "2:12", "nonsense"),
        ("list.v4", b"Chain INPUT (policy ACCEPT)\n", "1:1", "iptables -L"),
        ("empty.v4", b"", "1:1", "iptables-save text"),
        ("loop.v4", b"*filter\n:a - [0:0]\n-A INPUT -j a\n-A a -j a\nCOMMIT\n", "4:1", "a -> a"),
    ];
    for (name, text, place, what) in cases {
        let file = scratch.write(name, text);
        for args in [
            &["replay", &file, CAPTURE][..],
            &["why", &file, "--packet", "udp 1.1.1.1:1 > 1.1.1.2:2"],
        ] {
            let ran = tamis(args);
            let refusal = ran.refusal();
            assert!(refusal.starts_with(&format!("{file}:{place}: expected ")), "{refusal}");
            assert!(refusal.contains(what), "{refusal}");
        }
    }
}

#[test]
fn captures_are_refused_with_their_name() {
    let scratch = Scratch::new("refused-captures");
    let text = scratch.write("notes.pcap", "not a capture at all, only some notes\n");
    let empty = scratch.write("empty.pcap", "");
    let gzip = scratch.write("odd.pcap.gz", b"\x1f\x8b\x08\x00garbage that is no deflate stream");
    let missing = scratch.file("missing.pcap");
    let directory = scratch.file(".");
    for capture in [&text, &empty, &gzip, &missing, &directory] {
        let ran = tamis(&["replay", RULES, capture]);
        assert!(ran.refusal().starts_with(&format!("{capture}: ")), "{}", ran.err);
        let ran = tamis(&["why", RULES, capture, "--packet", "1"]);
        assert!(ran.refusal().starts_with(&format!("{capture}: ")), "{}", ran.err);
    }
    // Rules and capture the wrong way round.
    let ran = tamis(&["replay", CAPTURE, RULES]);
    assert!(ran.refusal().starts_with(CAPTURE), "{}", ran.err);
}

#[test]
fn packet_specs_are_refused_at_their_column() {
    for (spec, place) in [
        ("", "--packet:1:"),
        ("tpc 1.2.3.4:5 > 1.2.3.4:10", "--packet:1:"),
        ("tcp 1.2.3.4:5 6.7.8.9:10", "--packet:15:"),
        ("tcp 1.2.3.4 > 6.7.8.9", "--packet:15:"),
        ("tcp 1.2.3.4:5 > 6.7.8.9:10 sin", "--packet:28:"),
        ("udp 1.2.3.4:5 > 6.7.8.9:99999", "--packet:17:"),
        ("udp 1.2.3.4:5 > 6.7.8.9:9 ttl=300", "--packet:31:"),
        ("udp 1.2.3.4:5 > 6.7.8.9:9 colour=red", "--packet:27:"),
    ] {
        let ran = tamis(&["why", RULES, "--packet", spec]);
        assert_eq!((ran.code, &*ran.out), (Some(2), ""), "{spec}");
        assert!(ran.err.starts_with(&format!("tamis: {place}")), "{spec}: {}", ran.err);
    }
}

#[test]
fn arguments_are_refused_in_one_line() {
    for (args, what) in [
        (&[][..], "expected a command: demo, replay, why or test"),
        (&["conquer"], "conquer"),
        (&["replay"], "RULES"),
        (&["replay", RULES], "CAPTURE"),
        (&["replay", RULES, CAPTURE, "--frobnicate"], "--frobnicate"),
        (&["replay", RULES, CAPTURE, "--vs"], "--vs"),
        (&["replay", RULES, CAPTURE, "--limit", "3"], "--list"),
        (&["replay", RULES, CAPTURE, "--path", "sideways"], "sideways"),
        (&["replay", RULES, CAPTURE, "--net", "10.0.0.0/8"], "IFACE=ADDRESS/BITS"),
        (&["replay", RULES, CAPTURE, "--local", "10.0.0.0/99"], "ADDRESS"),
        (&["replay", RULES, CAPTURE, "--family", "ipx"], "ip, ip6, arp or bridge"),
        (&["replay", RULES, CAPTURE, "--table", "nonsense"], "mangle filter"),
        (&["replay", RULES, CAPTURE, "--verdicts", "/nowhere/at/all"], "/nowhere/at/all: "),
        (&["replay", RULES, CAPTURE, "--save-counters", "/nowhere/at/all"], "/nowhere/at/all: "),
        (&["replay", "/nowhere/rules.v4", CAPTURE], "/nowhere/rules.v4: "),
        (&["replay", RULES, CAPTURE, "--html", "/nowhere/at/all"], "/nowhere/at/all: "),
        (&["replay", RULES, CAPTURE, "--split", RULES], "not a directory"),
        (&["replay", CAPTURE, CAPTURE], "captures stand after the rules"),
        (&["test", RULES, CAPTURE], "expected text"),
        (&["why", RULES, CAPTURE, "--packet", "0"], "1 to 287"),
        (&["why", RULES, CAPTURE, "--packet", "288"], "1 to 287"),
        (&["why", RULES, "--packet", "7"], "CAPTURE"),
        (&["why", RULES, CAPTURE, "--packet", "udp 1.1.1.1:1 > 1.1.1.2:2"], "NUMBER"),
    ] {
        let ran = tamis(args);
        assert!(ran.refusal().contains(what), "{args:?}: {}", ran.err);
        assert!(!ran.err.contains("os error"), "{}", ran.err);
    }
}

#[test]
fn a_replay_that_fails_leaves_the_last_page_and_counters_as_they_were() {
    let scratch = Scratch::new("refused-keeps");
    for option in ["--html", "--save-counters"] {
        let file = scratch.write("kept", "of the last replay, and longer than nothing\n");
        tamis(&["replay", RULES, "/nowhere/c.pcap", option, &file]).refusal();
        assert!(std::fs::read_to_string(&file).unwrap().starts_with("of the last replay"));
        assert_eq!(tamis(&["replay", RULES, CAPTURE, option, &file]).code, Some(0));
        assert!(!std::fs::read_to_string(&file).unwrap().contains("last replay"));
    }
}

#[test]
fn a_capture_without_packets_is_no_error_and_a_next_command_works() {
    let scratch = Scratch::new("refused-none");
    let capture = std::fs::read(CAPTURE).unwrap();
    let empty = scratch.file("empty.pcap");
    std::fs::write(&empty, &capture[..24]).unwrap();
    let ran = tamis(&["replay", RULES, &empty]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let next = format!("next: tamis why {RULES} --packet 'tcp ");
    assert!(ran.out.lines().last().unwrap().starts_with(&next), "{}", ran.out);
}

#[test]
fn rules_of_a_host_that_name_only_lo_are_asked_about_with_any_interface() {
    let scratch = Scratch::new("refused-lo");
    let text = "*filter\n:INPUT DROP [0:0]\n-A INPUT -i lo -j ACCEPT\nCOMMIT\n";
    let ran = tamis(&["replay", &scratch.write("lo.v4", text), CAPTURE]);
    assert!(ran.out.trim_end().ends_with(" --in eth0"), "{}", ran.out);
}

#[test]
fn help_and_version_are_no_errors() {
    for args in [&["--help"][..], &["--version"], &["replay", "--help"], &["why", "-h"]] {
        let ran = tamis(args);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{args:?}");
        assert!(ran.out.contains("tamis"), "{}", ran.out);
    }
}

#[test]
fn a_network_behind_two_interfaces_is_refused() {
    let equal = ["--net", "lan0=0.0.0.0/0", "--net", "wan0=0.0.0.0/0"];
    let ran = tamis(&[&["replay", RULES, CAPTURE][..], &equal].concat());
    assert!(ran.refusal().contains("behind one interface"), "{}", ran.err);
}

#[test]
fn commands_that_moved_say_where_to() {
    for args in [
        &["bench"][..],
        &["bench", "replay", "--quick", "--json"],
        &["bench", "--help"],
        &["lab", "workload", "--preset", "1"],
    ] {
        let ran = tamis(args);
        assert!(ran.refusal().contains("tamis-bench"), "{args:?}: {}", ran.err);
    }
    let help = tamis(&["--help"]).out;
    assert!(help.contains("replay") && !help.contains("bench") && !help.contains("lab"), "{help}");
}
