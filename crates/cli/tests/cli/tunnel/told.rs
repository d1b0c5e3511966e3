//! What is shown of packets of a tunnel while it runs: `tamis ctl drops`, `tamis watch` and `tamis top` of two runs that a
//! tunnel over the loopback device joins, as any user.

use std::net::UdpSocket;
use std::thread;

use pktio::pcap_file::NgWriter;
use pktio::{Frame, FrameMeta, Interface, LinkType};
use serde_json::{Value, json};

use crate::devices::comes_true;
use crate::ran::{Scratch, fed, tamis};
use crate::started::started;

/// Dropped before the tunnel, after it, and by it: nobody has that address.
const PACKETS: [&str; 3] = [
    "udp 10.77.1.9:4000 > 10.77.0.9:53",
    "udp 10.77.1.9:4000 > 10.77.0.9:54",
    "udp 10.77.1.9:4000 > 10.99.0.1:55",
];
const NEAR_RULES: &str = "-A FORWARD -i lan -o office -p udp -m udp --dport 53 -j DROP";
const FAR_RULES: &str = "-A FORWARD -i office -o lan -p udp -m udp --dport 54 -j DROP";

/// A key, and its public half.
fn key(folder: &Scratch) -> String {
    assert_eq!(tamis(&["tunnel", "keygen", "--out", &folder.file("own.key")]).code, Some(0));
    let secret = std::fs::read(folder.file("own.key")).unwrap();
    fed(&["tunnel", "pubkey"], &secret).out.trim_end().to_owned()
}

/// A run that joins what is said of `lan` and a tunnel.
fn run(folder: &Scratch, lan: &str, tunnel: &str, rule: &str) -> String {
    folder.write("rules.v4", format!("*filter\n:FORWARD ACCEPT [0:0]\n{rule}\nCOMMIT\n"));
    folder.write("office.toml", format!("[tunnel]\nkey = \"own.key\"\n{tunnel}"));
    folder.write(
        "live.toml",
        format!(
            "[[port]]\nname = \"lan\"\nkind = \"pcap\"\n{lan}\n\
             [[port]]\nname = \"office\"\nkind = \"tunnel\"\nfile = \"office.toml\"\n\
             [[wire]]\nports = [\"lan\", \"office\"]\n[rules]\nip = \"rules.v4\"\n\
             [control]\nsocket = \"c\"\n"
        ),
    )
}

/// Packets without a link's header.
fn packets(folder: &Scratch) {
    const ETHERNET: usize = 14;
    let mut writer = NgWriter::new(Vec::new()).unwrap();
    let interface = Interface { name: None, link_type: LinkType::RAW, snaplen: 0 };
    writer.add_interface(&interface).unwrap();
    for spec in PACKETS {
        let frame = replay::spec::parse(spec).unwrap().frame;
        let bytes = &frame[ETHERNET..];
        let meta = FrameMeta { wire_length: bytes.len() as u32, ..FrameMeta::default() };
        writer.write(0, Frame { bytes, meta: &meta }, None).unwrap();
    }
    folder.write("in.pcap", writer.finish().unwrap());
}

/// What a drop says of where the packet went and whose it is.
fn told(drop: &Value) -> Value {
    let keys = ["in", "in_peer", "out", "out_peer", "packet", "reason"];
    let of = |key: &str| (key.to_owned(), drop[key].clone());
    keys.into_iter().filter(|key| !drop[key].is_null()).map(of).collect()
}

#[test]
fn drops_name_the_tunnel_and_its_peer() {
    let [near, far] = ["near", "far"].map(|end| Scratch::new(&format!("tunnel-told-{end}")));
    let [near_key, far_key] = [&near, &far].map(key);
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let far_tunnel = format!(
        "listen = {port}\n[[peer]]\nname = \"road\"\nkey = \"{near_key}\"\nallowed = [\"10.77.1.0/24\"]\n"
    );
    let near_tunnel = format!(
        "[[peer]]\nname = \"hall\"\nkey = \"{far_key}\"\nallowed = [\"10.77.0.0/24\"]\n\
         endpoint = \"127.0.0.1:{port}\"\n"
    );
    packets(&near);
    let far_run = started(&run(&far, "out = \"out.pcap\"", &far_tunnel, FAR_RULES));
    let socket = far.file("c");
    let watch = ["watch", "--json", "--count", "1", "in office", "--socket"].map(str::to_owned);
    let watching = thread::spawn(move || {
        let args: Vec<&str> = watch.iter().map(String::as_str).chain([&*socket]).collect();
        tamis(&args)
    });
    let drops = |folder: &Scratch| {
        let drops = tamis(&["ctl", "--socket", &folder.file("c"), "--json", "drops"]).json();
        drops["drops"].as_array().unwrap().iter().map(told).collect::<Vec<_>>()
    };
    let in_far = json!({
        "in": "office", "in_peer": "road", "out": "lan", "packet": PACKETS[1], "reason": "rule",
    });
    let in_near = [
        json!({
            "in": "lan", "out": "office", "out_peer": "hall", "packet": PACKETS[0],
            "reason": "rule",
        }),
        json!({"in": "lan", "out": "office", "packet": PACKETS[2], "reason": "tunnel_no_peer"}),
    ];
    let config = run(&near, "file = \"in.pcap\"", &near_tunnel, NEAR_RULES);
    // A watcher that came too late sees the packets of the next run.
    comes_true("somebody watches", || {
        let near_run = started(&config);
        comes_true("it arrives", || drops(&far).contains(&in_far));
        comes_true("all are told", || drops(&near).len() == in_near.len());
        let found = drops(&near);
        assert!(in_near.iter().all(|drop| found.contains(drop)), "{found:#?}");
        let line = tamis(&["ctl", "--socket", &near.file("c"), "drops"]).out;
        assert!(
            line.contains(" lan > office/hall  udp 10.77.1.9:4000 > 10.77.0.9:53  drop"),
            "{line}"
        );
        let screen = tamis(&["top", "--socket", &near.file("c"), "--once", "-d", "0.2"]);
        assert!(screen.out.contains("lan > office"), "{screen:?}");
        assert_eq!(tamis(&["ctl", "--socket", &near.file("c"), "stop"]).code, Some(0));
        assert_eq!(near_run.ended().code, Some(0));
        watching.is_finished()
    });
    let watched = watching.join().unwrap();
    assert_eq!(told(&serde_json::from_str(watched.out.lines().next().unwrap()).unwrap()), in_far);
    assert_eq!(tamis(&["ctl", "--socket", &far.file("c"), "stop"]).code, Some(0));
    assert_eq!(far_run.ended().code, Some(0));
}
