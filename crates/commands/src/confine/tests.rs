//! What a confined process can no longer do. Each test is a process of its own: nothing is ever taken back.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::fs;
use std::net::ToSocketAddrs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::thread;

use live::DroppedPrivileges;
use live::config::{Privileges, Settings};
use pktio::{AfPacketConfig, AfPacketPort, Pool};

use super::give_up::{confine, give_up, judged};

/// Set where a test runs in a process of its own.
const ALONE: &str = "TAMIS_CONFINED_TEST";

const ALL: DroppedPrivileges =
    DroppedPrivileges { capabilities: true, new_privileges: true, system_calls: true, files: true };

/// Runs this test again in a process of its own, and gives its end; `None` in that process.
fn apart(test: &str) -> Option<ExitStatus> {
    if std::env::var_os(ALONE).is_some() {
        return None;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    // One thread besides the harness's own, as in the program.
    let name = format!("confine::tests::{test}");
    let command = command.args(["--exact", &name, "--nocapture", "--test-threads=1"]);
    Some(command.env(ALONE, "1").status().unwrap())
}

fn settings(folder: &str, privileges: &str) -> Settings {
    let text = format!(
        "[[port]]\nname = \"left\"\nkind = \"loopback\"\n[[port]]\nname = \"right\"\nkind = \"loopback\"\n\
         [[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"rules.v4\"\n\
         [conntrack]\nfile = \"kept/connections.txt\"\n[privileges]\ndrop = {privileges}\n"
    );
    Settings::from_text(&format!("{folder}/live.toml"), &text).unwrap()
}

/// A folder with a configuration, and one in it to write to.
fn folder(test: &str) -> String {
    let folder = std::env::temp_dir().join(format!("tamis-confine-{test}"));
    fs::create_dir_all(folder.join("kept")).unwrap();
    fs::write(folder.join("rules.v4"), "").unwrap();
    folder.to_str().unwrap().to_owned()
}

/// Whether the machine has all that there is; what it has is given up.
fn gives_up_all(given_up: DroppedPrivileges, lacking: &[String]) -> bool {
    let is_absent =
        |line: &String| line.contains("this kernel has none") || line.contains("processor");
    assert!(lacking.iter().all(is_absent), "{lacking:?}");
    if given_up != ALL {
        eprintln!("SKIPPED: {}", lacking.join("; "));
    }
    given_up == ALL
}

/// A field of what the kernel says of this thread.
fn field(name: &str) -> String {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').trim().to_owned()
}

#[test]
fn off_gives_up_nothing() {
    let (given_up, lacking) = confine(&settings("/nowhere", "\"off\"")).unwrap();
    assert_eq!((given_up, lacking.len()), (DroppedPrivileges::default(), 0));
    assert_eq!(settings("/nowhere", "\"off\"").privileges, Privileges::Off);
}

#[test]
fn files_are_its_own_alone() {
    let folder = folder("files");
    if let Some(end) = apart("files_are_its_own_alone") {
        assert!(end.success(), "{end}");
        fs::remove_dir_all(&folder).unwrap();
        return;
    }
    assert!(fs::read("/etc/passwd").is_ok());
    let (given_up, lacking) = confine(&settings(&folder, "\"auto\"")).unwrap();
    if !gives_up_all(given_up, &lacking) {
        return;
    }
    // Also by a thread that starts later.
    let probes = thread::spawn(move || {
        assert!(fs::read("/etc/passwd").is_err() && fs::read("/etc/shadow").is_err());
        assert!(fs::read(format!("{folder}/rules.v4")).is_ok());
        assert!(fs::write(format!("{folder}/rules.v4"), "").is_err(), "rules are read alone");
        assert!(fs::write(format!("{folder}/kept/connections.txt"), "").is_ok());
        assert!(fs::write("/tmp/tamis-confine-elsewhere", "").is_err());
    });
    probes.join().unwrap();
}

#[test]
fn capabilities_are_gone_for_every_thread() {
    if let Some(end) = apart("capabilities_are_gone_for_every_thread") {
        return assert!(end.success(), "{end}");
    }
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    // What the kernel says has to be among its own files.
    let settings = settings("/proc", "\"auto\"");
    let (given_up, lacking) = confine(&settings).unwrap();
    if !gives_up_all(given_up, &lacking) {
        return;
    }
    let of_thread = || ["CapEff", "CapPrm", "CapInh", "CapAmb", "NoNewPrivs", "Seccomp"].map(field);
    let none = "0000000000000000";
    let expected = [none, none, none, none, "1", "2"];
    assert_eq!(of_thread(), expected);
    assert_eq!(thread::spawn(of_thread).join().unwrap(), expected);
    // Whether the bounding set may be changed is root's to say.
    assert!(!is_root || field("CapBnd") == none);
}

#[test]
fn no_socket_leaves_the_host_and_no_process_starts() {
    if let Some(end) = apart("no_socket_leaves_the_host_and_no_process_starts") {
        return assert!(end.success(), "{end}");
    }
    let (given_up, lacking) = confine(&settings("/nowhere", "\"auto\"")).unwrap();
    if !gives_up_all(given_up, &lacking) {
        return;
    }
    assert!(std::net::UdpSocket::bind("127.0.0.1:0").is_err());
    assert!(AfPacketPort::open(&AfPacketConfig::new("lo"), &Pool::new(1, 2048, 0)).is_err());
    assert!(UnixDatagram::unbound().is_ok());
    assert!(Command::new("/bin/true").status().is_err());
}

#[test]
fn names_are_looked_up_where_that_is_needed_and_little_else_is_left() {
    if let Some(end) = apart("names_are_looked_up_where_that_is_needed_and_little_else_is_left") {
        return assert!(end.success(), "{end}");
    }
    let (given_up, lacking) = give_up(&settings("/nowhere", "\"auto\""), true);
    if !gives_up_all(given_up, &lacking) {
        return;
    }
    assert!(("localhost", 1).to_socket_addrs().unwrap().all(|addr| addr.ip().is_loopback()));
    assert!(std::net::UdpSocket::bind("127.0.0.1:0").is_ok(), "servers are asked by UDP");
    // A server that is not there, or knows no such name, is an error, and not the end.
    let _ = ("tamis.invalid", 1).to_socket_addrs();
    assert!(fs::read("/proc/self/status").is_err() && fs::write("/etc/tamis-confine", "").is_err());
    assert!(Command::new("/bin/true").status().is_err());
}

#[test]
fn a_device_is_opened_again_where_that_is_asked_for() {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if let Some(end) = apart("a_device_is_opened_again_where_that_is_asked_for") {
        return assert!(end.success(), "{end}");
    }
    let open = || {
        let config = AfPacketConfig { promiscuous: false, ..AfPacketConfig::new("lo") };
        AfPacketPort::open(&config, &Pool::new(1, 2048, 0))
    };
    if !is_root || open().is_err() {
        return eprintln!("SKIPPED: no packet sockets (not root?)");
    }
    let (given_up, _) = confine(&settings("/proc", "\"auto\"\nreopen = \"keep\"")).unwrap();
    assert!(!given_up.capabilities && given_up.new_privileges);
    // NET_ADMIN is 12, NET_RAW 13.
    assert_eq!(["CapEff", "CapPrm", "CapBnd"].map(field), ["0000000000003000"; 3]);
    assert!(open().is_ok());
}

#[test]
fn a_call_that_no_run_makes_ends_the_process() {
    if let Some(end) = apart("a_call_that_no_run_makes_ends_the_process") {
        // Where the machine has no seccomp it was skipped, and succeeded.
        return assert!(end.signal() == Some(libc::SIGSYS) || end.success(), "{end}");
    }
    let (given_up, lacking) = confine(&settings("/nowhere", "\"auto\"")).unwrap();
    if !gives_up_all(given_up, &lacking) {
        return;
    }
    let _ = std::os::unix::fs::chroot("/tmp");
    panic!("it goes on");
}

/// Landlock refuses other programs, too, with an error; seccomp ends a process that asks for one.
#[test]
fn another_program_is_not_even_looked_for() {
    if let Some(end) = apart("another_program_is_not_even_looked_for") {
        return assert!(end.signal() == Some(libc::SIGSYS) || end.success(), "{end}");
    }
    let (given_up, lacking) = confine(&settings("/nowhere", "\"auto\"")).unwrap();
    if !gives_up_all(given_up, &lacking) {
        return;
    }
    let error = Command::new("/bin/true").exec();
    panic!("it goes on: {error}");
}

#[test]
fn what_cannot_be_given_up_is_told_or_an_error_where_it_is_required() {
    let lacking = || vec!["files (Landlock) cannot be given up: off".to_owned()];
    let error = judged(Privileges::Required, DroppedPrivileges::default(), lacking()).unwrap_err();
    assert!(error.to_string().ends_with("\"required\": files (Landlock) cannot be given up: off"));
    assert_eq!(judged(Privileges::Auto, ALL, lacking()).unwrap(), (ALL, lacking()));
    assert!(judged(Privileges::Required, ALL, Vec::new()).is_ok());
}
