//! Rules that change while they are in force: `tamis ctl apply`, `rollback`, `get`, `log`, `confirm`, and the journal.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::ran::{Ran, Scratch, fed, tamis};
use crate::started::{Started, started};

const RULES: &str = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -s 10.0.0.1/32 -j DROP\nCOMMIT\n";

/// A run on two loopback ports, with or without a journal.
struct Live {
    folder: Scratch,
    config: String,
}

impl Live {
    fn new(test: &str, control: &str) -> Self {
        let folder = Scratch::new(test);
        folder.write("rules.v4", RULES);
        let config = folder.write(
            "live.toml",
            format!(
                "[[port]]\nname = \"left\"\nkind = \"loopback\"\n\
                 [[port]]\nname = \"right\"\nkind = \"loopback\"\n\
                 [[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"rules.v4\"\n\
                 [control]\nsocket = \"c\"\n{control}\n"
            ),
        );
        Self { folder, config }
    }

    fn journalled(test: &str) -> Self {
        Self::new(test, "journal = \"journal\"")
    }

    fn start(&self) -> Started {
        started(&self.config)
    }

    fn ctl(&self, args: &[&str]) -> Ran {
        tamis(&[&["ctl", "--socket", &self.folder.file("c")], args].concat())
    }

    fn json(&self, args: &[&str]) -> Value {
        self.ctl(&[args, &["--json"]].concat()).json()
    }

    /// Applies these rules, from standard input.
    fn apply(&self, text: &str, args: &[&str]) -> Ran {
        let socket = self.folder.file("c");
        fed(&[&["ctl", "--socket", &socket, "apply", "-"], args].concat(), text.as_bytes())
    }

    fn rules(&self) -> String {
        self.ctl(&["get"]).out
    }

    fn revision(&self) -> Option<u64> {
        self.json(&["status"])["revision"].as_u64()
    }

    fn stop(&self, run: Started) -> Ran {
        assert_eq!(self.ctl(&["stop"]).code, Some(0));
        run.ended()
    }
}

/// Rules of which `rules` drop.
fn dropping(rules: usize) -> String {
    let rules: String =
        (1..=rules).map(|n| format!("-A FORWARD -s 10.0.0.{n}/32 -j DROP\n")).collect();
    format!("*filter\n:FORWARD ACCEPT [0:0]\n{rules}COMMIT\n")
}

#[test]
fn rules_are_applied_compared_and_rolled_back() {
    let live = Live::new("revisions", "");
    let run = live.start();
    assert_eq!(live.revision(), Some(1));
    let applied = live.apply(&dropping(3), &[]);
    assert_eq!(applied.code, Some(0), "{}", applied.err);
    let expected = "revision 2 in force: 2 rules new, 0 gone, 1 kept (program 2)\n";
    assert!(applied.out.starts_with(expected), "{}", applied.out);
    assert!(applied.out.contains("tamis ctl rollback") && applied.out.contains("no journal"));

    let stale = live.apply(&dropping(1), &["--if-rev", "1"]);
    assert_eq!((stale.code, &*stale.out), (Some(6), ""), "{}", stale.err);
    assert_eq!(stale.err, "tamis: expected revision 1 to be in force, found 2\n");
    let dry = live.apply(&dropping(1), &["--if-rev", "2", "--dry-run"]);
    assert_eq!(
        dry.out, "nothing changed; revision 3 would have 0 rules new, 2 gone, 1 kept\n",
        "{}",
        dry.err
    );
    let bad =
        live.apply("*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -s 10.0.0.1/33\nCOMMIT\n", &[]);
    assert!(bad.refusal().starts_with("-:3:15: expected "), "{}", bad.err);
    let unknown = live.apply("*filter\n-A NONE -j DROP\nCOMMIT\n", &["--noflush"]);
    assert!(unknown.refusal().starts_with("-:2:4: expected a chain"), "{}", unknown.err);
    let unfit = "*nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -o right -j MASQUERADE\nCOMMIT\n";
    let unfit = live.apply(unfit, &[]);
    assert_eq!(unfit.code, Some(1));
    assert!(unfit.err.contains("-:3: -j MASQUERADE translates"), "{}", unfit.err);
    assert_eq!(live.revision(), Some(2));

    let insert = "*filter\n-I FORWARD 1 -s 192.0.2.1 -j DROP\nCOMMIT\n";
    let dry = live.apply(insert, &["--noflush", "--dry-run"]);
    assert!(dry.out.contains("1 rule new, 0 gone, 3 kept"), "{} {}", dry.out, dry.err);
    assert_eq!(live.apply(insert, &["--noflush"]).code, Some(0));
    assert!(live.rules().contains("-A FORWARD -s 192.0.2.1/32 -j DROP\n-A FORWARD -s 10.0.0.1/32"));
    let back = live.ctl(&["rollback", "1"]);
    assert!(
        back.out.starts_with("revision 4 in force: 0 rules new, 3 gone, 1 kept"),
        "{}",
        back.out
    );
    assert!(live.rules().ends_with(RULES), "{}", live.rules());
    assert!(live.ctl(&["rollback"]).out.starts_with("revision 5 in force: 3 rules new"));
    assert!(
        live.ctl(&["rollback", "9"]).err.contains("expected a revision that is kept, from 1 to 5")
    );
    let log = live.json(&["log"]);
    let what = log["revisions"].as_array().unwrap().iter().map(|entry| entry["what"].clone());
    let expected = ["rollback to 3", "rollback to 1", "apply --noflush -", "apply -", "start"];
    assert_eq!(what.collect::<Vec<_>>(), expected);
    assert!(log["revisions"][0]["pid"].as_u64().is_some_and(|pid| pid > 1));
    assert_eq!(live.ctl(&["log"]).out.lines().count(), 6);
    let idle =
        live.apply("*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j DROP\nCOMMIT\n", &["--dry-run"]);
    assert!(idle.err.starts_with("warning: -:3: INPUT: nothing on a wire comes"), "{}", idle.err);
    let other = format!("# Generated by iptables-save v1.8.9 (nf_tables)\n{RULES}");
    let other = live.apply(&other, &["--dry-run"]);
    assert!(other.err.contains("warning: -: its first line names another kind"), "{}", other.err);
    live.stop(run);
}

/// Of several families at once: what `get` prints goes in again.
#[test]
fn what_get_prints_may_be_applied() {
    let live = Live::new("revisions-get", "");
    let run = live.start();
    let six = "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -s 2001:db8::1/128 -j ACCEPT\nCOMMIT\n";
    assert_eq!(live.apply(six, &[]).code, Some(0));
    let both = live.rules();
    assert!(both.contains("ip6tables-save") && both.contains("10.0.0.1/32"), "{both}");
    let again = live.apply(&both, &[]);
    assert!(again.out.contains("0 rules new, 0 gone, 2 kept"), "{}{}", again.out, again.err);
    assert_eq!(live.rules(), both);
    // A line of the second part has its own number.
    let bad = both.replace("2001:db8::1/128", "2001:db8::1/129");
    let line = bad.lines().position(|line| line.contains("/129")).unwrap() + 1;
    let refused = live.apply(&bad, &[]);
    assert!(refused.refusal().starts_with(&format!("-:{line}:")), "{}", refused.err);
    // Back to where there were none of the second family.
    assert_eq!(live.ctl(&["rollback", "1"]).code, Some(0));
    assert!(!live.rules().contains("ip6"), "{}", live.rules());
    live.stop(run);
}

/// What the configuration refuses is refused later, too.
#[test]
fn packets_that_age_cross_no_bridge() {
    let live = Live::new("revisions-aging", "");
    let text = fs::read_to_string(&live.config).unwrap();
    let text = text.replace("\"loopback\"\n[[", "\"loopback\"\naddress = [\"192.0.2.1/24\"]\n[[");
    live.folder.write("live.toml", text.replace("[rules]", "ttl = \"lower\"\n[rules]"));
    let run = live.start();
    let bridge = "*filter\n:FORWARD DROP\n";
    let refused = live.apply(bridge, &["--family", "bridge"]);
    assert_eq!(refused.code, Some(1), "{}", refused.out);
    assert!(refused.err.contains("a router's packets cross no bridge"), "{}", refused.err);
    let six = live.apply("*filter\n:FORWARD DROP [0:0]\nCOMMIT\n", &["--family", "ip6"]);
    assert_eq!(six.code, Some(1), "{}", six.out);
    assert!(six.err.contains("expected address = [\"…\"] of ip6 on left"), "{}", six.err);
    assert_eq!(live.revision(), Some(1));
    live.stop(run);
}

#[test]
fn an_acknowledged_change_outlasts_a_kill() {
    let live = Live::journalled("revisions-kill");
    let run = live.start();
    for rules in 2..5 {
        assert_eq!(live.apply(&dropping(rules), &[]).code, Some(0));
    }
    let before = live.rules();
    run.kill();
    let run = live.start();
    assert_eq!((live.revision(), live.rules()), (Some(4), before));
    assert!(
        live.ctl(&["rollback", "2"]).out.starts_with("revision 5 in force: 0 rules new, 2 gone")
    );
    let (folder, kept) = (live.folder.file("journal"), live.rules());
    live.stop(run);

    // A file that has changed wins, and is reported; the journal's rules can be had back.
    let changed = RULES.replace("10.0.0.1", "10.9.9.9");
    live.folder.write("rules.v4", &changed);
    let run = live.start();
    assert_eq!(live.revision(), Some(6));
    assert!(live.rules().ends_with(&changed), "{}", live.rules());
    assert_eq!(live.ctl(&["rollback", "5"]).code, Some(0));
    assert_eq!(live.rules(), kept);
    let log = live.json(&["log"]);
    assert_eq!(log["revisions"][1]["what"], "a file that has changed");
    live.stop(run);
    // It has been read: the journal wins again.
    let run = live.start();
    assert_eq!((live.revision(), live.rules()), (Some(7), kept));
    live.stop(run);

    let file = format!("{folder}/tamis.redb");
    let mut bytes = fs::read(&file).unwrap();
    for byte in bytes.iter_mut().skip(4096) {
        *byte ^= 0x55;
    }
    fs::write(&file, bytes).unwrap();
    let ran = tamis(&["run", &live.config]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("damaged") && ran.err.contains("mv "), "{}", ran.err);
    fs::rename(&file, format!("{file}.damaged")).unwrap();
    let run = live.start();
    assert_eq!(live.revision(), Some(1));
    live.stop(run);
}

#[test]
fn a_revision_goes_back_unless_it_is_confirmed() {
    let live = Live::journalled("revisions-confirm");
    let run = live.start();
    let waits = live.apply(&dropping(2), &["--confirm", "600s"]);
    assert!(waits.out.contains("tamis ctl confirm, or it goes back in 600 s"), "{}", waits.out);
    let second = live.apply(&dropping(3), &[]);
    assert_eq!(second.code, Some(1));
    assert!(second.err.contains("revision 2 waits for tamis ctl confirm, for "), "{}", second.err);
    assert!(live.ctl(&["status"]).out.contains("unless it is confirmed"));
    // It still waits after a crash.
    run.kill();
    let run = live.start();
    assert!(live.json(&["status"])["goes_back_in"].as_u64().is_some_and(|left| left <= 600));
    assert_eq!(live.ctl(&["confirm"]).out, "revision 2 stays\n");
    assert_eq!(live.ctl(&["confirm"]).code, Some(1));

    assert_eq!(live.apply(&dropping(4), &["--confirm", "1"]).code, Some(0));
    while live.revision() == Some(3) {}
    assert_eq!(live.revision(), Some(4));
    assert!(!live.rules().contains("10.0.0.3"), "{}", live.rules());
    // Also where the time is over while nothing runs.
    assert_eq!(live.apply(&dropping(4), &["--confirm", "1"]).code, Some(0));
    run.kill();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let run = live.start();
    assert_eq!(live.revision(), Some(6));
    assert!(!live.rules().contains("10.0.0.3"), "{}", live.rules());
    assert_eq!(live.json(&["log"])["revisions"][0]["what"], "revision 5 was not confirmed");
    live.stop(run);
}

#[test]
fn a_folder_that_others_may_open_has_no_journal() {
    let live = Live::journalled("revisions-folder");
    fs::create_dir(live.folder.file("journal")).unwrap();
    let mode = Command::new("chmod").args(["750", &live.folder.file("journal")]).status();
    assert!(mode.unwrap().success());
    let ran = tamis(&["run", &live.config]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("(chmod 700), found mode 750"), "{}", ran.err);
}

#[test]
fn files_that_are_read_again_are_a_revision() {
    let live = Live::journalled("revisions-files");
    let run = live.start();
    live.folder.write("rules.v4", dropping(2));
    let pid = run.pid().to_string();
    assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    while live.revision() != Some(2) {}
    let rules = live.rules();
    run.kill();
    let run = live.start();
    assert_eq!((live.revision(), live.rules()), (Some(2), rules));
    live.stop(run);
}
