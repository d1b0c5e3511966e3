//! Every frame is accounted for, also where a device takes no more of them, and where a port loses them on purpose.

use super::{Cable, Hosts, RIGHT, dropped, has_settled};

const RULES: &str = "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -p udp -j ACCEPT\n\
    -A FORWARD -p icmp -j ACCEPT\nCOMMIT\n";
const RULES_V6: &str = "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n";
/// Sends a number of datagrams as fast as it can.
const FLOOD: &str = "import socket,sys\n\
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
    for at in range(int(sys.argv[2])): out.sendto(b'x' * 200, (sys.argv[1], 9))\n";
const PROGRAMS: &[&str] = &["ip", "tc", "sysctl", "ping", "python3"];

#[test]
fn frames_that_a_full_queue_refuses_are_dropped_with_a_name() {
    let Some(mut hosts) = Hosts::new("full", Cable::Veth { offloads: true }, PROGRAMS) else {
        return;
    };
    hosts.wire(RULES, RULES_V6, "");
    // Or most of the flood waits in vain for the neighbour's address.
    hosts.does(0, "ping", &["-q", "-c", "1", "-W", "5", RIGHT]);
    // A queue of a few frames, which leave slowly.
    let slow = "qdisc add dev m1 root tbf rate 200kbit burst 2k limit 4000";
    let (said, is_there) = hosts.says(1, "tc", &slow.split(' ').collect::<Vec<_>>());
    if !is_there {
        return crate::ran::skipped(&format!("full: no token bucket: {said}"));
    }
    hosts.does(0, "python3", &["-c", FLOOD, RIGHT, "3000"]);
    let status = settled(&hosts, 3000);
    assert!(dropped(&status, "left", "tx_full") > 1000, "{status}");
    // It goes on once there is room.
    hosts.says(1, "tc", &["qdisc", "del", "dev", "m1", "root"]);
    hosts.does(0, "python3", &["-c", FLOOD, RIGHT, "100"]);
    let before = dropped(&status, "left", "tx_full");
    let status = settled(&hosts, 3100);
    assert_eq!(dropped(&status, "left", "tx_full"), before, "{status}");
    hosts.stop();
}

#[test]
fn frames_under_faults_are_accounted_for() {
    let Some(mut hosts) = Hosts::new("fault", Cable::Veth { offloads: false }, PROGRAMS) else {
        return;
    };
    let faults = "[[port]]\nname = \"bad\"\nkind = \"fault\"\nof = \"left\"\nseed = 7\ndrop = 50000\n\
        duplicate = 50000\nreorder = 50000\ncorrupt = 50000\ntruncate = 50000\ndelay = 50000\n\
        [[wire]]\nports = [\"bad\", \"right\"]\n";
    hosts.wire(RULES, RULES_V6, faults);
    hosts.says(0, "ping", &["-q", "-c", "200", "-i", "0.002", "-W", "1", RIGHT]);
    hosts.does(0, "python3", &["-c", FLOOD, RIGHT, "5000"]);
    let status = settled(&hosts, 4500);
    let wires = status["wires"].as_array().unwrap();
    assert!(wires[0]["received"].as_u64().unwrap() < 5600, "some were lost on the way: {status}");
    assert!(wires[0]["dropped"].as_object().unwrap().len() > 1, "by several reasons: {status}");
    hosts.stop();
}

/// A short piece of `make soak-live`.
#[test]
fn memory_stays_flat_while_links_flap() {
    if std::process::Command::new("unshare")
        .args(["-n", "true"])
        .status()
        .map_or(true, |it| !it.success())
    {
        return crate::ran::skipped("soak: no network namespaces (not root?)");
    }
    let soaked = lab::bench::live::soak::run(std::path::Path::new(crate::ran::TAMIS), 1_000_000);
    let soaked = soaked.unwrap();
    assert!(soaked.frames >= 1_000_000 && soaked.is_good(), "{soaked:#?}");
    let reasons = soaked.status["wires"][0]["dropped"].as_object().unwrap();
    assert!(reasons.len() > 2, "faults had an effect: {soaked:#?}");
}

/// The status once `frames` frames came in on the left, and no more do: before, some are on their way, and have no fate
/// yet.
fn settled(hosts: &Hosts, frames: u64) -> serde_json::Value {
    let mut before = 0;
    for _ in 0..100 {
        let status = hosts.reach(&["--json", "status"]).json();
        let received = status["wires"][0]["received"].as_u64().unwrap();
        if received >= frames && received == before && has_settled(&status) {
            return status;
        }
        before = received;
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("fewer than {frames} frames came: {}", hosts.status());
}
