//! Own tables: no text of a file or of a client changes them, and only the program that opened the run does.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use live::config::OwnTable;
use live::{DroppedPrivileges, Running};
use pktio::{InProcess, Opener};
use rules::model::Family;
use serde_json::{Value, json};

use crate::settings::Folder;

const CONFIG: &str = "[[port]]\nname = \"left\"\nkind = \"loopback\"\n[[port]]\nname = \"right\"\nkind = \"loopback\"\n\
    [[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"rules.v4\"\n";

fn table(rule: &str) -> String {
    format!(
        "*security\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n{rule}COMMIT\n"
    )
}

fn filter(port: u16) -> String {
    format!(
        "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -m tcp --dport {port} -j DROP\nCOMMIT\n"
    )
}

fn asked(run: &Running, request: &Value) -> Value {
    run.answer(&request.to_string())
}

/// All rules in force, of a family.
fn in_force(run: &Running, file: &str) -> String {
    let snapshot = asked(run, &json!({ "command": "snapshot" }));
    snapshot["files"][file].as_str().unwrap_or_default().to_owned()
}

fn apply(run: &Running, text: &str, noflush: bool) -> Value {
    asked(run, &json!({ "command": "apply", "text": text, "name": "a.rules", "noflush": noflush }))
}

#[test]
fn an_own_table_stays_whatever_rules_are_put_in_force() {
    let folder = Folder::new("live-own");
    folder.write("rules.v4", filter(1));
    let mut settings = folder.settings(CONFIG);
    let own = |family, rule| OwnTable { family, name: "security", text: table(rule) };
    let drop = "-A FORWARD -p tcp -m tcp --dport 22 -j DROP\n";
    settings.own = vec![own(Family::Ipv4, drop), own(Family::Ipv6, drop)];
    let opener: Arc<dyn Opener> = Arc::new(InProcess);
    let opened = live::open(&settings, &opener, &mut ()).unwrap();
    let (asks, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let run = opened.start(DroppedPrivileges::default()).unwrap().reloading(Arc::clone(&asks));
    let (running, ends) = (run.running(), Arc::clone(&stop));
    let waiting = thread::spawn(move || run.wait(&ends, |_| {}));
    let run = &running;
    let has_own = |rule: &str, port: u16| {
        for file in ["iptables.save", "ip6tables.save"] {
            assert!(in_force(run, file).contains(rule), "{file}: {}", in_force(run, file));
        }
        assert!(in_force(run, "iptables.save").contains(&format!("--dport {port} -j DROP")));
    };
    has_own(drop, 1);
    // The whole rules of a family, with a table of that name and without.
    for text in [filter(2), filter(2) + &table("")] {
        assert!(apply(run, &text, false)["revision"].is_u64());
        has_own(drop, 2);
    }
    assert!(apply(run, &table(""), false).to_string().contains("table security is left out"));
    has_own(drop, 22);
    let refused = apply(run, "*filter\nCOMMIT\n*security\n-F FORWARD\nCOMMIT\n", true);
    let what = refused["error"]["what"].as_str().unwrap();
    assert!(what.starts_with("a.rules:3:1: expected no changes of table security"), "{what}");
    // What the run's program changes is no revision.
    let revision = asked(run, &json!({ "command": "get" }));
    let more = "-A FORWARD -p udp -m udp --dport 53 -j DROP\n";
    let changes =
        [Family::Ipv4, Family::Ipv6].map(|family| (family, format!("*security\n{more}COMMIT\n")));
    run.change_own(&changes).unwrap();
    assert_eq!(asked(run, &json!({ "command": "get" })), revision);
    assert!(!revision.to_string().contains("security"), "{revision}");
    has_own(more, 22);
    assert!(run.change_own(&[(Family::Ipv4, "*security\n-X none\nCOMMIT\n".to_owned())]).is_err());
    let back = asked(run, &json!({ "command": "rollback", "revision": 1 }));
    assert!(back["revision"].is_u64(), "{back}");
    has_own(more, 1);
    // Rules that are tried have it, too.
    assert!(
        asked(run, &json!({ "command": "shadow_start", "texts": [filter(4)] }))["active"] == true
    );
    assert!(asked(run, &json!({ "command": "promote" }))["revision"].is_u64());
    has_own(more, 4);
    // The files are read again.
    fs::write(folder.0.join("rules.v4"), filter(3)).unwrap();
    asks.store(true, Ordering::Relaxed);
    let start = Instant::now();
    while !in_force(run, "iptables.save").contains("--dport 3 -j DROP") {
        assert!(start.elapsed() < Duration::from_secs(30), "the files are read");
        thread::sleep(Duration::from_millis(10));
    }
    has_own(more, 3);
    stop.store(true, Ordering::Relaxed);
    assert!(waiting.join().unwrap().1.is_ok());
}
