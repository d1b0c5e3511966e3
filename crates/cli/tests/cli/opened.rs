//! Files, sockets and answers that somebody else has made: what they lead to, how long they take, and what is written over.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use live::{Request, ask};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use crate::ran::{Ran, Scratch, TAMIS, cramped, skipped, tamis};
use crate::started::{Started, started};

const RULES: &str = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -j ACCEPT\nCOMMIT\n";

const LOOPED: &str = "[[port]]\nname = \"left\"\nkind = \"loopback\"\n[[port]]\nname = \"right\"\nkind = \"loopback\"\n\
                      [[wire]]\nports = [\"left\", \"right\"]\n";

fn pipe(folder: &Scratch, name: &str) -> String {
    let pipe = folder.file(name);
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    pipe
}

/// A configuration with these sections.
fn config(folder: &Scratch, more: &str) -> String {
    folder.write("rules.v4", RULES);
    folder.write("live.toml", format!("{LOOPED}[rules]\nip = \"rules.v4\"\n{more}"))
}

/// Runs for ten seconds at most.
fn soon(args: &[&str]) -> Ran {
    let mut command = Command::new("timeout");
    let ran: Ran =
        command.args(["--signal", "KILL", "10", TAMIS]).args(args).output().unwrap().into();
    assert!(ran.code.is_some_and(|code| code != 137), "{args:?} hangs");
    ran
}

#[test]
fn a_folder_of_somebody_elses_leads_nowhere_else() {
    let folder = Scratch::new("opened-folder");
    let secret = folder.write("secret", "*filter\n:INPUT SECRETWORD\n");
    fs::create_dir(folder.file("host")).unwrap();
    folder.write("host/iptables.save", RULES);
    let host = folder.file("host");
    let capture = folder.capture("c.pcap", "eth0", &["udp 10.0.0.1:1000 > 10.0.0.2:53"]);
    assert_eq!(soon(&["why", &host, &capture, "--packet", "1"]).code, Some(0));
    for name in
        ["iptables.save", "ip6tables.save", "ipset.save", "routes.txt", "nft.json", "bans.txt"]
    {
        let file = folder.file(&format!("host/{name}"));
        let before = fs::read(&file).ok();
        let why = |expected: &str| {
            for args in
                [&["why", &*host, &capture, "--packet", "1"][..], &["replay", &host, &capture]]
            {
                let ran = soon(args);
                assert!(ran.code != Some(0) && ran.err.contains(expected), "{name}: {}", ran.err);
                assert!(!ran.err.contains("SECRETWORD"), "{name}: {}", ran.err);
            }
            fs::remove_file(&file).unwrap();
        };
        let _ = fs::remove_file(&file);
        symlink(&secret, &file).unwrap();
        why("found a link that leads elsewhere");
        symlink("/dev/zero", &file).unwrap();
        why("found a link that leads elsewhere");
        pipe(&folder, &format!("host/{name}"));
        why("expected a file, found a pipe");
        if let Some(before) = before {
            fs::write(&file, before).unwrap();
        }
    }
}

#[test]
fn what_a_person_names_may_be_a_pipe_but_not_without_an_end() {
    let folder = Scratch::new("opened-pipe");
    let rules = pipe(&folder, "rules");
    let writer = std::thread::spawn({
        let rules = rules.clone();
        move || fs::write(rules, RULES).unwrap()
    });
    assert_eq!(soon(&["lint", &rules]).code, Some(0));
    writer.join().unwrap();
    let endless = tamis(&["lint", "/dev/zero"]);
    assert!(endless.refusal().contains("a binary file"), "{}", endless.err);
    // Text without an end; memory is reserved by the gibibyte, and touched by what is read.
    let shell = format!("yes '# 789' | timeout 60 {TAMIS} lint /dev/stdin");
    let mut command = Command::new("sh");
    let ran: Ran =
        command.args(["-c", &format!("ulimit -v 4000000; {shell}")]).output().unwrap().into();
    assert!(ran.refusal().contains("expected at most"), "{}", ran.err);
}

#[test]
fn a_run_opens_files_and_nothing_that_waits() {
    let folder = Scratch::new("opened-run");
    let config = config(&folder, "");
    fs::remove_file(folder.file("rules.v4")).unwrap();
    pipe(&folder, "rules.v4");
    for args in [&["run", &*config][..], &["run", "--check", &config]] {
        assert!(soon(args).refusal().contains("rules.v4: expected a file, found a pipe"));
    }
    for end in ["file", "out"] {
        let port = format!("kind = \"pcap\"\n{end} = \"rules.v4\"\n");
        let ports = LOOPED.replacen("kind = \"loopback\"\n", &port, 1);
        folder.write("r", RULES);
        let config = folder.write("live.toml", format!("{ports}[rules]\nip = \"r\"\n"));
        let ran = soon(&["run", &config]);
        assert!(ran.err.contains("expected a file, found a pipe"), "{}", ran.err);
    }
}

/// Kills a process after 30 s, unless the sender is dropped before.
fn watched(pid: u32) -> Sender<()> {
    let (alive, dropped) = channel();
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    std::thread::spawn(move || {
        if dropped.recv_timeout(Duration::from_secs(30)) == Err(RecvTimeoutError::Timeout) {
            let _ = kill_process(pid, Signal::KILL);
        }
    });
    alive
}

/// Rules become a pipe that nobody writes to: the run says so, goes on, and ends on request.
#[test]
fn a_pipe_in_the_place_of_rules_holds_up_no_reload() {
    let folder = Scratch::new("opened-reload");
    let config = config(&folder, "[control]\nsocket = \"c\"\n");
    let mut run = started(&config);
    // One that hangs is ended, and the test fails.
    let _alive = watched(run.pid());
    fs::remove_file(folder.file("rules.v4")).unwrap();
    pipe(&folder, "rules.v4");
    let kill = |signal: &str, run: &Started| {
        let done = Command::new("kill").args([signal, &run.pid().to_string()]).status();
        assert!(done.unwrap().success());
    };
    kill("-HUP", &run);
    let said = run.says("not reloaded: ").unwrap();
    assert!(said.contains("rules.v4: expected a file, found a pipe"), "{said}");
    let applied = ask(&folder.path().join("c"), &Request::Status {}).unwrap();
    assert!(applied.is_ok());
    kill("-TERM", &run);
    let start = Instant::now();
    assert_eq!(run.ended().code, Some(0));
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_run_writes_over_no_file_that_it_is_given() {
    let folder = Scratch::new("opened-over");
    let important = folder.write("important.txt", "important");
    let ran = soon(&["run", &config(&folder, "[control]\nsocket = \"important.txt\"\n")]);
    assert!(ran.err.contains("expected a socket, or nothing yet"), "{}", ran.err);
    symlink(&important, folder.file("link")).unwrap();
    let ran = soon(&["run", &config(&folder, "[control]\nsocket = \"link\"\n")]);
    assert!(ran.err.contains("expected a socket, or nothing yet"), "{}", ran.err);
    assert_eq!(fs::read_to_string(&important).unwrap(), "important");
    assert!(fs::symlink_metadata(folder.file("link")).unwrap().is_symlink());

    fs::hard_link(folder.file("rules.v4"), folder.file("same")).unwrap();
    folder.capture("in.pcap", "eth0", &["udp 10.0.0.1:1000 > 10.0.0.2:53"]);
    for (out, file) in [
        ("rules.v4", "rules.v4"),
        ("same", "rules.v4"),
        ("live.toml", "live.toml"),
        ("in.pcap", "in.pcap"),
    ] {
        let port = format!(
            "[[port]]\nname = \"left\"\nkind = \"pcap\"\nfile = \"in.pcap\"\nout = \"{out}\"\n"
        );
        let text = LOOPED.replacen("[[port]]\nname = \"left\"\nkind = \"loopback\"\n", &port, 1);
        let config = folder.write("live.toml", format!("{text}[rules]\nip = \"rules.v4\"\n"));
        let before = fs::read(folder.file(file)).unwrap();
        for args in [&["run", &*config][..], &["run", "--check", &config]] {
            let ran = soon(args);
            assert!(
                ran.refusal().contains(": expected a file of its own, found an input"),
                "{}",
                ran.err
            );
        }
        assert_eq!(fs::read(folder.file(file)).unwrap(), before, "{out}");
    }
    // What the command line and a tunnel name are inputs, too.
    let out = |name: &str| {
        let port = format!(
            "[[port]]\nname = \"left\"\nkind = \"pcap\"\nfile = \"in.pcap\"\nout = \"{name}\"\n"
        );
        LOOPED.replacen("[[port]]\nname = \"left\"\nkind = \"loopback\"\n", &port, 1)
    };
    let tried = folder.write("tried.v4", RULES);
    let shadowed =
        folder.write("live.toml", format!("{}[rules]\nip = \"rules.v4\"\n", out("tried.v4")));
    let ran = soon(&["run", &shadowed, "--shadow", &tried]);
    assert!(ran.refusal().contains("found an input, "), "{}", ran.err);
    let key = folder.file("office.key");
    assert_eq!(tamis(&["tunnel", "keygen", "--out", &key]).code, Some(0));
    let tunnel =
        "[tunnel]\nname = \"office\"\nkey = \"office.key\"\naddress = [\"10.77.0.1/24\"]\n";
    folder.write("office.toml", tunnel);
    let text = out("office.key").replacen(
        "name = \"right\"\nkind = \"loopback\"\n",
        "name = \"right\"\nkind = \"tunnel\"\nfile = \"office.toml\"\n",
        1,
    );
    let tunnelled = folder.write("live.toml", format!("{text}[rules]\nip = \"rules.v4\"\n"));
    let before = fs::read(&key).unwrap();
    assert!(soon(&["run", "--check", &tunnelled]).refusal().contains("office.key"));
    assert_eq!(fs::read(&key).unwrap(), before);
    let config = config(&folder, "[conntrack]\nfile = \"rules.v4\"\n");
    assert!(soon(&["run", &config]).refusal().contains("live.toml:"));
    assert_eq!(fs::read_to_string(folder.file("rules.v4")).unwrap(), RULES);
}

/// A link where a journal or connections are begun truncates nothing.
#[test]
fn what_is_begun_goes_through_no_link() {
    let folder = Scratch::new("opened-begun");
    let important = folder.write("important.txt", "important");
    fs::create_dir(folder.file("journal")).unwrap();
    fs::set_permissions(folder.file("journal"), Permissions::from_mode(0o700)).unwrap();
    symlink(&important, folder.file("journal/tamis.unfinished")).unwrap();
    symlink(&important, folder.file("connections.unfinished")).unwrap();
    let more =
        "[conntrack]\nfile = \"connections\"\n[control]\nsocket = \"c\"\njournal = \"journal\"\n";
    let run = started(&config(&folder, more));
    let _ = ask(&folder.path().join("c"), &Request::Stop {});
    assert_eq!(run.ended().code, Some(0));
    assert!(fs::metadata(folder.file("journal/tamis.redb")).unwrap().is_file());
    assert!(fs::symlink_metadata(folder.file("connections")).unwrap().is_file());
    assert_eq!(fs::read_to_string(important).unwrap(), "important");
}

/// A server that answers without an end: `ctl` reads up to its bound and says so.
#[test]
fn an_answer_without_an_end_is_none() {
    let folder = Scratch::new("opened-answer");
    let socket = folder.path().join("c");
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let _ = client.read(&mut [0; 1024]);
            while client.write_all(&[b'['; 1 << 16]).is_ok() {}
        }
    });
    let socket = socket.to_str().unwrap();
    let ran = cramped(1_000_000, &["ctl", "--socket", socket, "status"]);
    assert!(ran.refusal().contains("expected an answer of at most"), "{}", ran.err);
    let ran = cramped(1_000_000, &["watch", "--socket", socket]);
    assert!(ran.refusal().contains("expected an answer of at most"), "{}", ran.err);
}

/// A user that is nobody here.
const OTHER: u32 = 65_533;

#[test]
fn both_ends_look_at_who_the_other_one_is() {
    if !geteuid().is_root() {
        return skipped("opened: root makes the processes of other users");
    }
    let folder = Scratch::new("opened-who");
    // Of another user's, in a folder of its own; it is removed after the run has been ended.
    let removed = TempDir::new().unwrap();
    let theirs = removed.path();
    chown(theirs, Some(OTHER), Some(OTHER)).unwrap();
    let socket = theirs.join("c");
    let config = config(&folder, &format!("[control]\nsocket = \"{}\"\n", socket.display()));
    let refused = soon(&["run", &config]);
    assert!(refused.err.contains("expected folders of root or user 0"), "{}", refused.err);
    let text = fs::read_to_string(&config).unwrap().replace("\"rules.v4\"", "\"r\"");
    fs::write(theirs.join("r"), RULES).unwrap();
    let config = theirs.join("live.toml");
    fs::write(&config, text).unwrap();
    let tamis = theirs.join("tamis");
    fs::copy(TAMIS, &tamis).unwrap();
    let mut command = Command::new(&tamis);
    command.arg("run").arg(&config).uid(OTHER).gid(OTHER).current_dir("/");
    let run = Started::new(command).unwrap();
    // Root may ask, as long as nobody else can have put the socket there.
    assert!(ask(&socket, &Request::Status {}).unwrap().is_ok());
    fs::set_permissions(&socket, Permissions::from_mode(0o666)).unwrap();
    let by = |user: u32| {
        let mut command = Command::new(&tamis);
        let socket = socket.to_str().unwrap();
        command.args(["ctl", "--socket", socket, "status"]).uid(user).gid(user).current_dir("/");
        Ran::from(command.stdin(Stdio::null()).output().unwrap())
    };
    assert_eq!(by(OTHER).code, Some(0));
    assert!(by(OTHER - 1).err.contains("to listen there, found user"), "{:?}", by(OTHER - 1));
    fs::set_permissions(theirs, Permissions::from_mode(0o775)).unwrap();
    let refused = ask(&socket, &Request::Status {}).unwrap_err().to_string();
    assert!(refused.contains("chmod go-w"), "{refused}");
    drop(run);
}

/// What rules say steers no screen, whichever command prints it in JSON.
#[test]
fn json_of_a_run_steers_no_screen() {
    let folder = Scratch::new("opened-json");
    let more = "[control]\nsocket = \"c\"\njournal = \"journal\"\n";
    let config = config(&folder, more);
    let odd = "a\u{202e}b\u{9b}c";
    let rules =
        folder.write("odd", RULES.replace("-j ACCEPT", &format!("-m comment --comment \"{odd}\"")));
    let run = started(&config);
    let socket = folder.file("c");
    let applied = tamis(&["ctl", "--socket", &socket, "apply", &rules]);
    assert_eq!(applied.code, Some(0), "{}", applied.err);
    for command in ["get", "log", "status", "counters", "drops", "bans"] {
        let ran = tamis(&["ctl", "--socket", &socket, "--json", command]);
        assert!(!ran.out.contains(['\u{202e}', '\u{9b}']), "{command}: {}", ran.out);
        assert!(
            command != "get" || ran.json()["text"].as_str().unwrap().contains(odd),
            "{}",
            ran.out
        );
    }
    run.kill();
}
