//! Values from outside that hold lines, commands of CI servers and marks that steer: none reaches the screen as such.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::ran::{RULES, Ran, Scratch, skipped};

/// A value that tries everything.
const EVIL: &str =
    "x\nFORGED by L1\n::error::one\n  ::stop-commands::two\n##[error]three\u{202e}\u{9b}\r";
const SPEC: &str = "tcp 198.51.100.7:51200 > 10.0.0.9:5432 syn";

/// Asserts that no line of a text is forged, and that something of the value shows.
fn is_honest(what: &str, text: &str) {
    for line in text.split(['\n', '\r', '\u{2028}', '\u{85}']) {
        let begins = line.trim_start();
        assert!(!begins.starts_with("FORGED") && !begins.starts_with("::stop"), "{what}: {line}");
        assert!(!begins.starts_with("::error::"), "{what}: {line}");
    }
    assert!(!text.contains("##[") && !text.contains(['\u{202e}', '\u{9b}']), "{what}: {text}");
    assert!(text.contains("FORGED"), "{what} does not show it: {text}");
}

fn both(ran: &Ran) -> String {
    format!("{}{}", ran.out, ran.err)
}

/// A folder with a capture whose interface has this name.
fn folder(name: &str, interface: &str) -> Scratch {
    let scratch = Scratch::new(name);
    fs::copy(RULES, scratch.file("rules.v4")).unwrap();
    scratch.capture("c.pcapng", interface, &[SPEC]);
    scratch
}

#[test]
fn interface_names_stay_in_their_line() {
    let scratch = folder("evil-interface", EVIL);
    scratch.write("i.v4", "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -i lan0 -j ACCEPT\nCOMMIT\n");
    let capture = ["i.v4", "c.pcapng", "--path", "forward"];
    let near = scratch.tamis(&[&["why"], &capture[..], &["--packet", "1", "--near", "3"]].concat());
    assert!(near.out.contains("were it -i lan0, not -i "), "{}", near.out);
    is_honest("why", &both(&near));
    let json = scratch.tamis(&[&["why"], &capture[..], &["--packet", "1", "--json"]].concat());
    is_honest("why --json", &both(&json));
    for option in ["--in", "--out"] {
        for command in ["replay", "why"] {
            let mut args = vec![command];
            args.extend(capture);
            args.extend([option, EVIL]);
            args.extend(if command == "why" {
                &["--packet", "1"][..]
            } else {
                &["--list", "drop"]
            });
            is_honest(&format!("{command} {option}"), &both(&scratch.tamis(&args)));
        }
    }
    let net = format!("{EVIL}=10.0.0.0/8");
    let replayed = scratch.tamis(&[&["replay"], &capture[..], &["--net", &net]].concat());
    is_honest("replay --net", &both(&replayed));
    let packets = ["replay", "i.v4", "c.pcapng", "--packets", "-", "--json"];
    is_honest("--packets", &scratch.tamis(&packets).out);
    // No SPEC can name it, so nothing is recorded under its name.
    let recorded = scratch.tamis(&["test", "--record", "c.pcapng", "i.v4", "--path", "forward"]);
    assert!(!both(&recorded).contains("FORGED"), "{recorded:?}");
}

#[test]
fn cases_stay_in_their_lines() {
    let scratch = folder("evil-cases", "eth0");
    let evil = serde_json::to_string(EVIL).unwrap();
    let case = |rest: &str| format!("[[case]]\npacket = '{SPEC}'\nexpect = 'unknown'\n{rest}\n");
    for (what, rest) in [
        ("name", format!("name = {evil}\nby = 'filter/INPUT/1'")),
        ("by", format!("name = 'x'\nby = \"filter/{}/1\"", &evil[1..evil.len() - 1])),
        ("by_text", format!("name = 'x'\nby_text = {evil}")),
    ] {
        scratch.write("cases.toml", case(&rest));
        for more in [&[][..], &["--github"], &["--json"]] {
            let ran = scratch.tamis(&[&["test", "rules.v4", "cases.toml"], more].concat());
            assert_eq!(ran.code, Some(1), "{what}: {}", ran.err);
            let told = both(&ran);
            // The command of ours, of one line.
            let ours = |line: &&str| !line.starts_with("::error file=cases.toml,line=1,title=");
            let told: Vec<&str> = told.lines().filter(ours).collect();
            is_honest(&format!("{what} {more:?}"), &told.join("\n"));
        }
    }
    let inside = format!("[defaults]\nin = {evil}\n{}", case("name = 'x'\nby = 'ttl'"));
    scratch.write("cases.toml", inside);
    is_honest("defaults", &both(&scratch.tamis(&["test", "rules.v4", "cases.toml"])));
}

#[test]
fn file_names_stay_in_their_line() {
    let scratch = folder("evil-files", "eth0");
    let evil: String = EVIL.replace('/', "");
    fs::copy(scratch.file("rules.v4"), scratch.path().join(&evil)).unwrap();
    let capture = format!("{evil}.pcapng");
    fs::copy(scratch.file("c.pcapng"), scratch.path().join(&capture)).unwrap();
    let refused = scratch.write("refused.v4", "");
    let wrong = format!("{evil}.v4");
    fs::rename(refused, scratch.path().join(&wrong)).unwrap();
    for args in [
        &["replay", &evil, &capture][..],
        &["replay", "rules.v4", &capture, "c.pcapng", "--list", "drop"],
        &["replay", "rules.v4", "c.pcapng", "--vs", &evil],
        &["replay", &wrong, "c.pcapng"],
        &["replay", "rules.v4", "absent\nFORGED"],
        &["why", "rules.v4", "absent\nFORGED", "--packet", "1"],
        &["replay", "rules.v4", "c.pcapng", "--path", EVIL],
    ] {
        is_honest(&format!("{args:?}"), &both(&scratch.tamis(args)));
    }
}

/// A rule may hold them in its comment; for a program they stay as they are.
#[test]
fn converted_rules_are_made_visible_for_a_terminal() {
    let scratch = folder("evil-convert", "eth0");
    let comment = "##[error]FORGED\u{202e}\x1b[2J";
    let rule = format!("-A FORWARD -m comment --comment \"{comment}\" -j DROP");
    scratch.write("evil.v4", format!("*filter\n:FORWARD DROP [0:0]\n{rule}\nCOMMIT\n"));
    let piped = scratch.tamis(&["convert", "evil.v4", "--to", "ip6tables"]);
    assert!(piped.out.contains(comment), "{}", piped.out);
    let command = format!("{} convert evil.v4 --to ip6tables", crate::ran::TAMIS);
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).current_dir(scratch.path());
    let Ok(shown) = script.output() else {
        return skipped("convert on a terminal: no script(1)");
    };
    let shown = String::from_utf8(shown.stdout).unwrap();
    is_honest("convert", &shown.replace("\r\n", "\n"));
    assert!(!shown.contains('\x1b'), "{shown:?}");
    is_honest("json", &scratch.tamis(&["convert", "evil.v4", "--to", "json"]).out);
}

#[test]
fn rules_in_json_add_no_lines() {
    let scratch = folder("evil-json", "eth0");
    let document = scratch.tamis(&["convert", "rules.v4", "--to", "json"]).out;
    for (of, to) in [
        ("\"policy\": \"DROP\"", "\"policy\": \"DROP [0:0]\\n:FORGED - [0:0]\\n:INPUT ACCEPT\""),
        ("\"name\": \"FORWARD\"", "\"name\": \"FORWARD ACCEPT [0:0]\\n:FORGED\""),
        ("\"name\": \"filter\"", "\"name\": \"filter\\n:FORGED -\""),
    ] {
        assert!(document.contains(of), "{of}");
        scratch.write("evil.json", document.replacen(of, to, 1));
        let ran = scratch.tamis(&["convert", "evil.json", "--from", "json", "--to", "iptables"]);
        let message = ran.refusal();
        assert!(
            message.starts_with("evil.json: expected ") && message.contains("FORGED"),
            "{message}"
        );
    }
}

/// ebtables takes a slash in the name of a chain, and a policy for it.
#[test]
fn a_chain_name_leads_nowhere_else() {
    let scratch = folder("evil-split", "eth0");
    let rules = "*filter\n:FORWARD ACCEPT\n:../../out DROP\n-A FORWARD -j ../../out\n";
    scratch.write("evil.eb", rules);
    fs::create_dir_all(scratch.file("in/policy-filter-..")).unwrap();
    let split = ["--family", "bridge", "--path", "forward", "--split", "in/drop.policy-filter-.."];
    fs::create_dir_all(scratch.file("in/drop.policy-filter-../drop.policy-filter-..")).unwrap();
    let ran = scratch.tamis(&[&["replay", "evil.eb", "c.pcapng"], &split[..]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let folder = scratch.file("in/drop.policy-filter-..");
    assert!(Path::new(&folder).join("drop.policy-filter-..%2F..%2Fout.pcapng").is_file());
    assert!(!Path::new(&scratch.file("in/out.pcapng")).exists());
}

#[test]
fn suggestions_can_be_typed_whatever_files_are_called() {
    let scratch = folder("evil-operands", "eth0");
    fs::rename(scratch.file("rules.v4"), scratch.path().join("-r.v4")).unwrap();
    fs::rename(scratch.file("c.pcapng"), scratch.path().join("--list")).unwrap();
    scratch.write(
        "-c.toml",
        format!("rules='-r.v4'\n[[case]]\nname='x'\npacket='{SPEC}'\nexpect='accept'\n"),
    );
    for (args, codes) in [
        (&["replay", "--in=-eth0", "--", "-r.v4", "--list"][..], [0, 0]),
        (&["replay", "--path", "forward", "--", "-r.v4", "--list"], [0, 0]),
        (&["why", "--packet", "1", "--path", "forward", "--", "-r.v4", "--list"], [1, 1]),
        (&["test", "--path", "forward", "--", "-c.toml"], [1, 4]),
    ] {
        let ran = scratch.tamis(args);
        assert_eq!(ran.code, Some(codes[0]), "{args:?}: {}", ran.err);
        let next = ran.out.lines().find_map(|line| line.strip_prefix("next: tamis ")).unwrap();
        let typed = format!("{} {next}", crate::ran::TAMIS);
        let mut shell = Command::new("sh");
        let ended =
            Ran::from(shell.arg("-c").arg(&typed).current_dir(scratch.path()).output().unwrap());
        assert_eq!(ended.code, Some(codes[1]), "{next}: {}", ended.err);
    }
}
