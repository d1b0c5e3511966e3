//! What `tamis run` has given up once it takes frames: as the kernel says of each of its threads.

use std::fs;

use serde_json::Value;

use crate::ran::{Scratch, skipped, tamis};
use crate::started::started;

fn config(folder: &Scratch, drop: &str) -> String {
    folder.write("rules.v4", "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n");
    let ports = ["left", "right"]
        .map(|name| format!("[[port]]\nname = \"{name}\"\nkind = \"loopback\"\n"))
        .concat();
    let text = format!(
        "{ports}[[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"rules.v4\"\n\
         [conntrack]\nfile = \"connections.txt\"\n[control]\nsocket = \"c\"\n\
         [privileges]\ndrop = \"{drop}\"\n"
    );
    folder.write("live.toml", text)
}

/// A field of what the kernel says of a thread.
pub(crate) fn field(status: &str, name: &str) -> String {
    let value = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned());
    status.lines().find_map(value).unwrap()
}

/// Whether this kernel lets a run give up all that there is; says so where not.
pub(crate) fn is_complete(test: &str) -> bool {
    let (given_up, _) = watched(test, "auto");
    let is_complete = given_up.as_object().unwrap().values().all(|is_gone| *is_gone == true);
    if !is_complete {
        skipped(&format!("confinement: this kernel lacks some of it: {given_up}"));
    }
    is_complete
}

/// What a run says of itself, and what the kernel says of each of its threads; it ends well.
fn watched(test: &str, drop: &str) -> (Value, Vec<Vec<String>>) {
    let folder = Scratch::new(test);
    let run = started(&config(&folder, drop));
    let threads = fs::read_dir(format!("/proc/{}/task", run.pid())).unwrap();
    let threads = threads.map(|thread| {
        let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        let fields = ["CapEff", "CapPrm", "CapInh", "CapAmb", "NoNewPrivs", "Seccomp"];
        fields.map(|name| field(&status, name)).to_vec()
    });
    let threads: Vec<_> = threads.collect();
    let socket = folder.file("c");
    let status = tamis(&["ctl", "--socket", &socket, "--json", "status"]).json();
    assert_eq!(tamis(&["ctl", "--socket", &socket, "stop"]).code, Some(0));
    let ran = run.ended();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    // What it does at its end it may still do.
    assert!(fs::exists(folder.file("connections.txt")).unwrap() && !fs::exists(socket).unwrap());
    (status["given_up"].clone(), threads)
}

/// Whether a run gives up here all that it can.
pub(crate) fn gives_up_all(test: &str) -> bool {
    watched(test, "auto").0.as_object().unwrap().values().all(|is_gone| *is_gone == true)
}

#[test]
fn no_thread_of_a_run_has_more_than_it_needs() {
    let (given_up, threads) = watched("confined", "auto");
    if given_up.as_object().unwrap().values().any(|is_gone| *is_gone != true) {
        return skipped(&format!("confinement: this kernel lacks some of it: {given_up}"));
    }
    assert!(threads.len() > 1, "the worker is one of them");
    let none = "0000000000000000";
    for thread in threads {
        assert_eq!(thread, [none, none, none, none, "1", "2"]);
    }
}

#[test]
fn nothing_is_given_up_where_it_is_off() {
    let (given_up, threads) = watched("confined-off", "off");
    assert!(given_up.as_object().unwrap().values().all(|is_gone| *is_gone == false));
    // A container may have given up some of it for all of us.
    let own = fs::read_to_string("/proc/self/status").unwrap();
    let own = field(&own, "Seccomp");
    assert!(threads.iter().all(|thread| thread[5] == own), "{threads:?}");
}
