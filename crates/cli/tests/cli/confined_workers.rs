//! Several workers on devices, once all that they need no more is given up: what they do they still may, all of it. Needs
//! root.

use std::fs;
use std::process::{Command, Stdio};

use crate::confined::{field, is_complete};
use crate::devices::{Stage, comes_true, ip, stage};
use crate::ran::skipped;

/// Follows the rules' own line in the configuration.
const REST: &str = "ipset = \"sets/sets.save\"\nbans = \"bans/bans.txt\"\n\
    [workers]\ncores = [0, 1]\n[conntrack]\nfile = \"kept/connections.txt\"\n";

const RULES: &str = "*filter\n:FORWARD DROP [0:0]\n\
    -A FORWARD -m set --match-set refused src -j DROP\n-A FORWARD -p icmp -j ACCEPT\nCOMMIT\n";

/// A run whose files are in folders of their own, and all of whose threads have given up what there is.
fn confined(test: &str, wire: &str, reopen: &str) -> Option<Stage> {
    if !is_complete(&format!("{test}-kernel")) {
        return None;
    }
    let mut stage = stage(test)?;
    for folder in ["sets", "bans", "kept"] {
        fs::create_dir(stage.folder.file(folder)).unwrap();
    }
    stage.folder.write("sets/sets.save", "create refused hash:ip\n");
    stage.folder.write("bans/bans.txt", "");
    let privileges = format!("[privileges]\ndrop = \"required\"\nreopen = \"{reopen}\"\n");
    stage.start_with("kind = \"af_packet\"", wire, &format!("{REST}{privileges}"));
    has_only(stage.pid(), NONE);
    Some(stage)
}

const NONE: &str = "0000000000000000";
/// `CAP_NET_ADMIN` is 12, `CAP_NET_RAW` 13.
const TO_OPEN: &str = "0000000000003000";
/// And `CAP_BPF`, 39.
const TO_OPEN_XDP: &str = "0000008000003000";

/// All threads of a process have these capabilities, and are under a filter of system calls.
#[track_caller]
fn has_only(pid: u32, capabilities: &str) {
    for status in statuses(pid) {
        let fields = ["CapEff", "CapPrm", "CapBnd"].map(|name| field(&status, name));
        assert_eq!(fields, [capabilities; 3], "{status}");
        assert_eq!(["NoNewPrivs", "Seccomp"].map(|name| field(&status, name)), ["1", "2"]);
    }
}

/// The process that opens devices for this one.
fn parent_for(pid: u32) -> u32 {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_for = |id: &u32| {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        status.contains(&format!("\nPPid:\t{pid}\n"))
    };
    ids.find(is_for).expect("it has started one")
}

/// Whether a process runs: a zombie does not.
fn runs(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    !status.is_empty() && !field(&status, "State").starts_with('Z')
}

/// What the kernel says of each thread of a process.
fn statuses(pid: u32) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let status = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("status")).unwrap();
    threads.map(|thread| status(thread.unwrap())).collect()
}

fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Makes the run read the files again.
fn reloaded(stage: &Stage, program: u64) {
    signal("-HUP", stage.pid());
    comes_true("they are read", || stage.status()["program"] == program);
}

#[test]
fn what_several_workers_do_they_may_do_confined() {
    let Some(mut stage) = confined("confined-workers", "", "no") else { return };
    assert!(stage.pings());
    assert_eq!(stage.status()["workers"].as_array().unwrap().len(), 2);
    if std::thread::available_parallelism().unwrap().get() >= 2 {
        let statuses = statuses(stage.pid());
        let workers = statuses.iter().filter(|status| field(status, "Name").contains("worker"));
        let mut cores: Vec<_> = workers.map(|status| field(status, "Cpus_allowed_list")).collect();
        cores.sort_unstable();
        assert_eq!(cores, ["0", "1"], "each is pinned");
    }

    // Rules, sets and bans are read again, from three folders.
    stage.folder.write("bans/bans.txt", "- ban 10.9.0.1\n");
    reloaded(&stage, 2);
    assert!(!stage.pings());
    stage.folder.write("bans/bans.txt", "");
    stage.folder.write("rules.v4", RULES);
    reloaded(&stage, 3);
    assert!(stage.pings());
    stage.folder.write("sets/sets.save", "create refused hash:ip\nadd refused 10.9.0.1\n");
    reloaded(&stage, 4);
    assert!(!stage.pings());
    stage.folder.write("sets/sets.save", "create refused hash:ip\n");
    reloaded(&stage, 5);
    stage.folder.write("rules.v4", "no rules");
    signal("-HUP", stage.pid());
    comes_true("a bad file is told", || stage.said("not reloaded: ") == 1);
    assert!(stage.pings());

    // Links are watched, and a device that goes ends nothing.
    let m = stage.names[1].clone();
    assert!(ip(&format!("-n {m} link set m0 down")));
    comes_true("left is down", || stage.states() == ["down", "up"]);
    assert!(ip(&format!("-n {m} link set m0 up")));
    comes_true("frames pass again", || stage.pings());
    assert!(ip(&format!("-n {m} link del m0")));
    comes_true("left is gone", || stage.states() == ["gone", "up"]);
    stage.stop();
    let kept = fs::read_to_string(stage.folder.file("kept/connections.txt")).unwrap();
    assert!(kept.contains("src=10.9.0.1 dst=10.9.0.2"), "{kept}");
}

#[test]
fn a_device_that_comes_back_is_opened_for_a_confined_run() {
    let Some(mut stage) = confined("confined-parent", "", "parent") else { return };
    let parent = parent_for(stage.pid());
    has_only(parent, TO_OPEN);
    assert!(stage.pings());
    // What ends a run does not end it before.
    ["-TERM", "-INT", "-HUP"].into_iter().for_each(|name| signal(name, parent));
    let m = stage.names[1].clone();
    for _ in 0..2 {
        assert!(ip(&format!("-n {m} link del m0")));
        is_missed(&stage);
        assert!(stage.plug_left());
        comes_true("both are up", || stage.states() == ["up", "up"]);
        comes_true("frames pass again", || stage.pings());
    }
    has_only(stage.pid(), NONE);
    has_only(parent, TO_OPEN);

    let lost = "the process that opens devices again has ended";
    assert_eq!(stage.said(lost), 0);
    signal("-KILL", parent);
    comes_true("its end is told", || stage.said(lost) == 1);
    assert!(stage.pings());
    assert!(ip(&format!("-n {m} link del m0")));
    is_missed(&stage);
    assert!(stage.plug_left());
    assert!(!stage.pings());
    assert_eq!((&*stage.states()[0], stage.said(lost)), ("gone", 1));
    stage.stop();
}

/// Waits until the left device is missed, which frames that should leave through it show.
fn is_missed(stage: &Stage) {
    let unheard = ["netns", "exec", &stage.names[2], "ping", "-c", "1", "-W", "1", "10.9.0.1"];
    comes_true("left is gone", || {
        let _ = Command::new("ip").args(unheard).stdout(Stdio::null()).status();
        stage.states()[0] == "gone"
    });
}

#[test]
fn a_link_that_is_lost_is_passed_on_by_a_confined_run() {
    let Some(mut stage) = confined("confined-link", "link = \"pass\"", "parent") else { return };
    let b = stage.names[2].clone();
    for _ in 0..2 {
        assert!(ip(&format!("-n {b} link set b0 down")));
        comes_true("left is taken down", || stage.states() == ["down", "down"]);
        assert!(ip(&format!("-n {b} link set b0 up")));
        comes_true("both are up", || stage.states() == ["up", "up"]);
    }
    comes_true("frames pass again", || stage.pings());
    // No frame should leave through the device that goes now, and it is missed all the same.
    let m = stage.names[1].clone();
    for _ in 0..2 {
        assert!(ip(&format!("-n {m} link del m0")));
        comes_true("left is gone, and right is down", || stage.states() == ["gone", "down"]);
        assert!(stage.plug_left());
        comes_true("both are up", || stage.states() == ["up", "up"]);
        comes_true("frames pass again", || stage.pings());
    }
    has_only(stage.pid(), NONE);
    stage.stop();
}

/// Sockets, the program and its link are the parent's to make; memory and rings the run gives them itself.
#[test]
fn a_device_of_af_xdp_that_comes_back_is_opened_for_a_confined_run() {
    let kept = "[privileges]\ndrop = \"required\"\n";
    if !is_complete("confined-xdp-kernel") {
        return;
    }
    let Some(mut stage) = stage("confined-xdp") else { return };
    stage.start_with("kind = \"af_xdp\"", "", kept);
    has_only(stage.pid(), NONE);
    let parent = parent_for(stage.pid());
    has_only(parent, TO_OPEN_XDP);
    comes_true("frames pass", || stage.pings());
    let m = stage.names[1].clone();
    for _ in 0..2 {
        assert!(ip(&format!("-n {m} link del m0")));
        comes_true("left is gone", || stage.states() == ["gone", "up"]);
        assert!(stage.plug_left());
        comes_true("both are up", || stage.states() == ["up", "up"]);
        comes_true("frames pass again", || stage.pings());
    }
    has_only(stage.pid(), NONE);
    has_only(parent, TO_OPEN_XDP);
    stage.stop();
}

#[test]
fn who_opens_devices_ends_with_the_run() {
    let Some(mut stage) = confined("confined-ends", "", "parent") else { return };
    let parent = parent_for(stage.pid());
    stage.stop();
    comes_true("it has ended, as the run did", || !runs(parent));
    fs::remove_file(stage.folder.file("kept/connections.txt")).unwrap();
    let config = stage.folder.file("live.toml");
    stage.launch(&config);
    let parent = parent_for(stage.pid());
    assert!(runs(parent));
    signal("-KILL", stage.pid());
    comes_true("it has ended, as the run was", || !runs(parent));
}

#[test]
fn a_tun_device_is_made_again_for_a_confined_run() {
    if !is_complete("confined-tun-kernel") {
        return;
    }
    let Some(mut stage) = stage("confined-tun") else { return };
    if !fs::exists("/dev/net/tun").unwrap() {
        return skipped("TUN devices: there is no /dev/net/tun");
    }
    stage.folder.write("rules.v4", RULES.replace("-m set --match-set refused src ", ""));
    let config = stage.folder.write(
        "live.toml",
        "[[port]]\nname = \"left\"\nkind = \"tun\"\ndevice = \"t0\"\n\
         [[port]]\nname = \"right\"\nkind = \"loopback\"\n\
         [[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"rules.v4\"\n\
         [workers]\ncount = 2\n[control]\nsocket = \"c\"\n\
         [privileges]\ndrop = \"required\"\n",
    );
    stage.launch(&config);
    has_only(stage.pid(), NONE);
    has_only(parent_for(stage.pid()), TO_OPEN);
    let m = stage.names[1].clone();
    for times in 1..=2 {
        assert!(ip(&format!("-n {m} link del t0")));
        comes_true("it is made again", || stage.said("left: t0 is back") == times);
        assert!(ip(&format!("-n {m} link set t0 up")));
    }
    stage.stop();
}
