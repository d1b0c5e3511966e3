//! Pings, downloads and iperf3 in both families, fragments and refusals: by packet sockets with offloads and without,
//! and by TUN devices.

use super::{Cable, Hosts, RIGHT, RIGHT_V6, dropped, hits};

const RULES: &str = "*filter\n:FORWARD DROP [0:0]\n\
    -A FORWARD -m conntrack --ctstate INVALID -j DROP\n\
    -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
    -A FORWARD -p icmp -j ACCEPT\n\
    -A FORWARD -p tcp -m tcp --dport 9 -j REJECT --reject-with tcp-reset\n\
    -A FORWARD -i left -p tcp -m conntrack --ctstate NEW -m multiport --dports 5201,8000 -j ACCEPT\n\
    -A FORWARD -i left -p udp -m udp --dport 5201 -j ACCEPT\nCOMMIT\n";
const RULES_V6: &str = "*filter\n:FORWARD DROP [0:0]\n\
    -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
    -A FORWARD -p icmpv6 -j ACCEPT\n\
    -A FORWARD -p tcp -m tcp --dport 9 -j REJECT --reject-with tcp-reset\n\
    -A FORWARD -i left -p tcp -m conntrack --ctstate NEW -m multiport --dports 5201,8000 -j ACCEPT\nCOMMIT\n";
const PROGRAMS: &[&str] = &["ip", "ss", "sysctl", "curl", "ping", "iperf3", "ethtool", "python3"];

#[test]
fn hosts_talk_by_packet_sockets() {
    talk("talk-on", Cable::Veth { offloads: true }, "");
}

#[test]
fn hosts_talk_by_packet_sockets_without_offloads() {
    talk("talk-off", Cable::Veth { offloads: false }, "");
}

#[test]
fn hosts_talk_by_tun_devices() {
    talk("talk-tun", Cable::Tun, "");
}

/// Over a wire of which the configuration says this.
pub(super) fn talk(test: &str, cable: Cable, wire: &str) {
    let Some(mut hosts) = Hosts::new(test, cable, PROGRAMS) else { return };
    hosts.wire(RULES, RULES_V6, wire);
    let sent: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
    hosts.folder.write("sent", &sent);
    hosts.serve(2, "python3", &["-m", "http.server", "--bind", "::", "8000"]);
    hosts.listens(2, 8000);

    for address in [RIGHT, RIGHT_V6] {
        hosts.does(0, "ping", &["-q", "-c", "5", "-i", "0.05", "-W", "5", address]);
        hosts.does(0, "ping", &["-q", "-c", "3", "-i", "0.05", "-W", "5", "-s", "4000", address]);
        downloads(&hosts, address, &sent);
        refused(&hosts, address);
    }
    for of in [
        &[RIGHT, "-n", "4M"][..],
        &[RIGHT, "-n", "4M", "-R", "-P", "2"],
        &[RIGHT, "-u", "-b", "50M", "-n", "500K"],
        &[RIGHT_V6, "-n", "2M"],
    ] {
        hosts.served(&["iperf3", "-s", "-1"], 5201, &[&["iperf3", "-c"], of].concat());
    }

    let (saved, status) = (hosts.counters(), hosts.status());
    assert_eq!(hits(&saved, "-A FORWARD -m conntrack --ctstate INVALID -j DROP"), 0, "{saved}");
    assert_eq!(
        hits(&saved, "-A FORWARD -p icmp -j ACCEPT"),
        2,
        "one of each ping begins it: {saved}"
    );
    for from in ["left", "right"] {
        for reason in ["tx_full", "truncated", "stack", "unknown", "refused", "conntrack"] {
            assert_eq!(dropped(&status, from, reason), 0, "{reason}: {status}");
        }
        assert!(dropped(&status, from, "fragment") > 0, "pings came in fragments: {status}");
    }
    for queue in status["wires"].as_array().unwrap().iter().map(|wire| &wire["queue"]) {
        assert_eq!(queue.is_object(), wire == super::ordered::WIRE, "{queue}");
        assert!(queue.is_null() || (&queue["bursts"], &queue["overdue"]) == (&0.into(), &0.into()));
    }
    hosts.stop();
}

/// Every byte that was sent is what came.
fn downloads(hosts: &Hosts, address: &str, sent: &[u8]) {
    let got = hosts.folder.file("got");
    let url = match address.contains(':') {
        true => format!("http://[{address}]:8000/sent"),
        false => format!("http://{address}:8000/sent"),
    };
    hosts.does(0, "curl", &["-s", "-m", "60", "-o", &got, &url]);
    assert!(std::fs::read(&got).unwrap() == sent, "{url}: not what was sent");
}

/// A connection that a reset ends at once, and not silence.
fn refused(hosts: &Hosts, address: &str) {
    let text = "import socket,sys\n\
        try: socket.create_connection((sys.argv[1], 9), 20)\n\
        except ConnectionRefusedError: print('refused')\n";
    let said = hosts.does(0, "python3", &["-c", text, address]);
    assert_eq!(said, "refused\n");
}
