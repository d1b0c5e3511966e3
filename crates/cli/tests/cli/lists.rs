//! `tamis ctl` about bans, sets and connections of a run.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::ran::{Ran, Scratch, TAMIS, skipped, tamis};
use crate::started::started;

const RULES: &str = "*filter\n:FORWARD ACCEPT [0:0]\n\
    -A FORWARD -m conntrack --ctstate INVALID -j DROP\n\
    -A FORWARD -m set --match-set bad src -j DROP\nCOMMIT\n";
const SPECS: [&str; 3] = [
    "tcp 10.0.0.7:40000 > 10.0.0.9:80 syn",
    "udp 10.0.0.7:4000 > 10.0.0.9:53",
    "udp 10.0.0.8:4000 > 10.0.0.9:53",
];

/// A run whose frames come back, with its socket; what it is asked.
fn folder(test: &str) -> (Scratch, String) {
    let folder = Scratch::new(test);
    folder.write("rules.v4", RULES);
    folder.write("sets", "create bad hash:ip timeout 0\ncreate good hash:ip timeout 0\n");
    folder.capture("in.pcap", "eth0", &SPECS);
    let config = folder.write(
        "live.toml",
        "[[port]]\nname = \"left\"\nkind = \"pcap\"\nfile = \"in.pcap\"\n\
         [[port]]\nname = \"right\"\nkind = \"loopback\"\n\
         [[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"rules.v4\"\nipset = \"sets\"\n\
         [control]\nsocket = \"c\"\n",
    );
    (folder, config)
}

#[test]
fn bans_sets_and_connections_of_a_run() {
    let (folder, config) = folder("ctl-lists");
    let socket = folder.file("c");
    let ctl = |args: &[&str]| -> Ran { tamis(&[&["ctl", "--socket", &socket], args].concat()) };
    let out = |args: &[&str]| {
        let ran = ctl(args);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        ran.out
    };
    let refused = |args: &[&str]| {
        let ran = ctl(args);
        assert_eq!((ran.code, &*ran.out), (Some(1), ""), "{}", ran.err);
        ran.err.trim_end().to_owned()
    };
    let run = started(&config);

    let told = |changes: &str, ranges: &str| {
        format!("{changes}, in force from the next packet on; banned now: {ranges}\n")
    };
    assert_eq!(out(&["ban", "192.0.2.7"]), told("1 change", "1 range"));
    assert_eq!(out(&["unban", "192.0.2.0/24"]), told("1 change", "0 ranges"));
    assert_eq!(out(&["deny", "192.0.2.7", "10.0.0.9"]), told("1 change", "0 ranges"));
    assert!(ctl(&["ban", "192.0.2.7", "10.0.0.9"]).refusal().contains("with deny and accept"));
    let what = "tamis: 1:1: expected ADDRESS or ADDRESS/BITS, found \"192.0.2\"";
    assert_eq!(refused(&["ban", "192.0.2"]), what);
    let line = |at: usize| format!("10.{}.{}.1\n", at / 200, at % 200);
    let mut lines: Vec<String> = (0..15_000).map(line).collect();
    let list = folder.write("list", lines.concat());
    let all = told("10,000 changes", "10,000 ranges") + &told("5,000 changes", "15,000 ranges");
    assert_eq!(out(&["ban", "--file", &list]), all);
    lines[12_000] = "10.0.0.0/33\n".to_owned();
    folder.write("list", lines.concat());
    let half = ctl(&["unban", "--file", &list]);
    assert_eq!((half.code, half.out), (Some(1), told("10,000 changes", "5,000 ranges")));
    assert!(half.err.contains("tamis: 12001:1: expected ADDRESS"), "{}", half.err);

    assert_eq!(out(&["sets", "add", "bad", "192.0.2.7", "timeout", "600"]), "added 1\n");
    let listed = out(&["sets", "list", "bad"]);
    let of_bad =
        "create bad hash:ip family inet maxelem 65536 timeout 0\nadd bad 192.0.2.7 timeout ";
    assert!(listed.starts_with(of_bad), "{listed}");
    assert!(refused(&["sets", "del", "bad", "192.0.2.8"]).ends_with("it's not added"));
    let many: String = (0..30).map(|at| format!("add good 192.0.2.{at}\n")).collect();
    let file = folder.write("restore", format!("{many}swap good bad\n"));
    assert_eq!(out(&["sets", "restore", &file]), "added 30, swapped 1\n");
    let listed = out(&["sets", "list", "bad"]);
    assert!(
        listed.lines().count() == 22 && listed.ends_with("# 20 of 30: --all lists all\n"),
        "{listed}"
    );
    assert_eq!(out(&["sets", "list", "bad", "--all"]).lines().count(), 31);
    assert_eq!(out(&["sets", "flush"]), "flushed 2\n");
    let heads: Vec<String> = out(&["sets", "list"]).lines().map(str::to_owned).collect();
    assert_eq!(heads.len(), 2);
    assert_eq!(heads[0].split_whitespace().collect::<Vec<_>>(), ["bad", "hash:ip", "0"]);

    // The capture is an old one: by now its connections are over, though nobody has met them since.
    let listed = ctl(&["conntrack", "list"]);
    assert_eq!((listed.code, &*listed.out), (Some(0), ""));
    assert!(listed.err.ends_with("0 of 3\n"), "{}", listed.err);
    let tcp = ctl(&["conntrack", "list", "-p", "tcp", "--all", "--json"]).json();
    assert_eq!((&tcp["count"], &tcp["next"]), (&3.into(), &().into()));
    let few = ["conntrack", "delete", "-p", "udp", "-s", "10.0.0.7", "--dport", "53", "-m", "0/1"];
    assert_eq!(out(&few), "ended: 0 connections\n");
    assert!(refused(&["conntrack", "delete"]).contains("conntrack_flush ends all"));
    assert!(refused(&["conntrack", "list", "-p", "tpc"]).contains("found \"tpc\""));
    assert_eq!(out(&["conntrack", "flush"]), "ended: 0 connections\n");
    assert_eq!(out(&["stop"]), "stopping\n");
    assert_eq!(run.ended().code, Some(0));
}

/// The socket's mode can be changed; the permitted users cannot.
#[test]
fn nobody_else_may_ask() {
    let (folder, config) = folder("ctl-others");
    let socket = folder.file("c");
    let run = started(&config);
    let mode = |path: &str, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&socket, 0o666);
    mode(folder.path().to_str().unwrap(), 0o755);
    let asked = Command::new(TAMIS).args(["ctl", "--socket", &socket, "stop"]).uid(65_534).output();
    match asked {
        Ok(asked) => {
            let said = String::from_utf8_lossy(&asked.stderr).into_owned();
            assert!(said.contains("expected root, or user 0, which runs tamis, to ask"), "{said}");
            assert_eq!(asked.status.code(), Some(1));
        }
        Err(error) => skipped(&format!("another user's request: {error} (not root?)")),
    }
    assert_eq!(tamis(&["ctl", "--socket", &socket, "stop"]).code, Some(0));
    assert_eq!(run.ended().code, Some(0));
}
