//! `tamis watch`, `ctl drops`, `ctl capture` and `ctl snapshot`: from a frame that a run drops to `tamis why`, which says
//! the same of it.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread;

use serde_json::Value;

use crate::devices::{Stage, comes_true, stage};
use crate::ran::{Scratch, tamis};
use crate::started::started;

/// Drops name a rule of IPv4 whose line is not its number; a packet has another time to live by then.
const RULES: &str = "*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j TTL --ttl-set 9\nCOMMIT\n\
    *filter\n:FORWARD DROP [0:0]\n-A FORWARD -p icmp -j ACCEPT\n\
    -A FORWARD -p udp -m udp --dport 53 -m ttl --ttl-eq 9 -j DROP\nCOMMIT\n";
const DECIDED: &str = "-A FORWARD -p udp -m udp --dport 53 -m ttl --ttl-eq 9 -j DROP";
const BY: &str = "udp 10.9.0.1:4000 > 10.9.0.2:53  drop by rule 2 of FORWARD (line 8): ";

/// A run whose capture is dropped at once, and which goes on for its other port.
fn run(folder: &Scratch) -> String {
    folder.write("rules.v4", RULES);
    folder.capture("in.pcap", "eth0", &["udp 10.9.0.1:4000 > 10.9.0.2:53 ttl=64"]);
    folder.write(
        "live.toml",
        "[[port]]\nname = \"left\"\nkind = \"pcap\"\nfile = \"in.pcap\"\n\
         [[port]]\nname = \"right\"\nkind = \"loopback\"\n\
         [[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"rules.v4\"\n\
         [control]\nsocket = \"c\"\n",
    )
}

#[test]
fn what_was_dropped_before_anybody_watched_is_kept() {
    let folder = Scratch::new("watch-kept");
    let run = started(&run(&folder));
    let socket = folder.file("c");
    let ctl = |args: &[&str]| tamis(&[&["ctl", "--socket", &socket], args].concat());
    comes_true("one drop", || ctl(&["--json", "drops"]).json()["drops"] != serde_json::json!([]));
    let drops = ctl(&["drops"]).out;
    let [line, next] = drops.lines().collect::<Vec<_>>()[..] else { panic!("{drops}") };
    assert!(line.ends_with(&format!(" left > right  {BY}{DECIDED}")), "{line}");
    assert!(next.starts_with("next: tamis watch"), "{next}");

    // The folder is that of the run: nothing is routed, and time to live stays.
    let host = folder.file("host");
    let written = ctl(&["snapshot", &host]);
    assert_eq!((written.code, &*written.err), (Some(0), ""), "{}", written.out);
    assert_eq!(
        fs::read_to_string(folder.file("host/wires.txt")).unwrap(),
        "wire left right keep - -\n"
    );
    let rules = fs::read_to_string(folder.file("host/iptables.save")).unwrap();
    assert!(rules.contains(&format!("[1:28] {DECIDED}")), "{rules}");
    assert_eq!(ctl(&["snapshot", &host]).code, Some(0), "it may be written again");
    fs::write(folder.file("host/bans.txt"), "").unwrap();
    assert!(ctl(&["snapshot", &host]).refusal().contains("bans.txt: exists"));
    fs::remove_file(folder.file("host/bans.txt")).unwrap();

    // A source that is banned by hand is in the folder, too.
    assert_eq!(ctl(&["bans"]).out, "nobody is banned, and everybody accepts everybody\n");
    assert_eq!(ctl(&["ban", "10.9.0.0/25"]).code, Some(0));
    assert_eq!(ctl(&["ban", "10.9.0.128/25"]).code, Some(0));
    assert_eq!(ctl(&["bans"]).out, "ban 10.9.0.0/24\n");
    assert_eq!(ctl(&["--json", "bans"]).json()["count"], 1);
    assert_eq!(ctl(&["snapshot", &host]).code, Some(0));
    let bans = fs::read_to_string(folder.file("host/bans.txt")).unwrap();
    assert_eq!(bans, "- ban 10.9.0.0/24\n");
    let why = folder.tamis(&["why", "host", "in.pcap", "--packet", "1"]);
    assert!(why.out.contains("banned source"), "{}", why.out);
    assert_eq!(ctl(&["unban", "10.9.0.0/24"]).code, Some(0));

    // A filter that is none, and a socket where nobody listens.
    let wrong = tamis(&["watch", "--socket", &socket, "tcp prt 22"]);
    assert_eq!(wrong.code, Some(1), "{}", wrong.err);
    assert!(wrong.err.starts_with("tamis: filter: expected host, net"), "{}", wrong.err);
    let nobody = tamis(&["watch", "--socket", &folder.file("none")]);
    assert!(nobody.refusal().contains("no run listens there"), "{}", nobody.err);

    // Those who watch make room for who asks, where there are too many of them.
    let watch = || {
        let client = UnixStream::connect(&socket).unwrap();
        writeln!(&client, "{{\"command\": \"watch\"}}").unwrap();
        client
    };
    let watching: Vec<_> = (0..40).map(|_| watch()).collect();
    comes_true("the status is told", || ctl(&["status"]).code == Some(0));
    drop(watching);

    // A client that watches when the run ends is notified.
    let watching = thread::spawn(move || tamis(&["watch", "--socket", &socket]));
    assert_eq!(tamis(&["ctl", "--socket", &folder.file("c"), "stop"]).code, Some(0));
    assert_eq!(run.ended().code, Some(0));
    assert!(matches!(watching.join().unwrap().code, Some(0 | 2)));
}

/// `tamis why` with a snapshot says of a wire what is so on a wire.
#[test]
fn a_folder_of_a_run_has_its_wires() {
    let folder = Scratch::new("watch-wires");
    folder.write("iptables.save", RULES.replace("-j DROP", "-j ACCEPT"));
    folder.capture("one.pcap", "left", &["udp 10.9.0.1:4000 > 10.9.0.2:53 ttl=64"]);
    let why = || folder.tamis(&["why", ".", "one.pcap", "--packet", "1"]).out;
    folder.write("wires.txt", "port right 192.0.2.1\nwire right left keep - -\n");
    let kept = why();
    assert!(kept.contains("path    forward, in left, out right\n"), "{kept}");
    assert!(kept.contains("ACCEPT by L8 ") && !kept.contains("time to live now"), "{kept}");
    folder.write("wires.txt", "wire right left lower - -\n");
    assert!(why().contains("forward: time to live now 8\n"), "{}", why());
    folder.write("wires.txt", "wire right left\n");
    let wrong = folder.tamis(&["why", ".", "one.pcap", "--packet", "1"]);
    assert!(wrong.refusal().contains("wires.txt:1: expected \"port NAME"), "{}", wrong.err);
}

/// The ways of a drop on real devices to its explanation: each command as it is printed by the one before.
#[test]
fn a_drop_between_two_hosts_is_watched_captured_and_explained() {
    let Some(mut stage) = stage("watch") else { return };
    stage.folder.write("rules.v4", RULES);
    let config = stage.folder.write(
        "live.toml",
        "[[port]]\nname = \"left\"\nkind = \"af_packet\"\ndevice = \"m0\"\n\
         [[port]]\nname = \"right\"\nkind = \"af_packet\"\ndevice = \"m1\"\n\
         [[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"rules.v4\"\n\
         [workers]\ncount = 2\n[control]\nsocket = \"c\"\n",
    );
    stage.launch(&config);
    comes_true("both can reach each other", || stage.pings());
    let (socket, file, host) =
        (stage.folder.file("c"), stage.folder.file("drop.pcapng"), stage.folder.file("host"));
    let watched = while_asking(&stage, &["watch", "--socket", &socket, "--count", "1", "udp"]);
    assert!(watched.contains(" left > right  udp 10.9.0.1:"), "{watched}");
    assert!(
        watched.contains(&format!("drop by rule 2 of FORWARD (line 8): {DECIDED}")),
        "{watched}"
    );
    let args = ["ctl", "--socket", &socket, "capture", &file, "--count", "2", "udp", "port", "53"];
    let captured = while_asking(&stage, &args);
    assert!(
        captured.contains("2 frames\nnext: tamis ctl snapshot DIR && tamis why DIR"),
        "{captured}"
    );
    assert_eq!(tamis(&["ctl", "--socket", &socket, "snapshot", &host]).code, Some(0));
    let why = tamis(&["why", &host, &file, "--packet", "1", "--json"]);
    assert_eq!(why.code, Some(1), "{}", why.err);
    let story: Value = serde_json::from_str(&why.out).unwrap();
    assert_eq!(story["verdict"], "drop", "{story:#}");
    let text = tamis(&["why", &host, &file, "--packet", "2"]).out;
    assert!(text.contains(&format!("DROP by L8 {DECIDED}")), "{text}");
    assert!(text.contains("path    forward, in left, out right\n"), "{text}");
    stage.stop();
}

/// What a command prints that ends once something is dropped: the left host asks for names meanwhile.
fn while_asking(stage: &Stage, args: &[&str]) -> String {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    let asked = thread::spawn(move || tamis(&args.iter().map(String::as_str).collect::<Vec<_>>()));
    comes_true("it has seen enough", || {
        let ask = "echo -n > /dev/udp/10.9.0.2/53; echo x > /dev/udp/10.9.0.2/53";
        let mut ask_from = Command::new("ip");
        ask_from.args(["netns", "exec", &stage.names[0], "bash", "-c", ask]);
        assert!(ask_from.status().unwrap().success());
        asked.is_finished()
    });
    let ran = asked.join().unwrap();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    ran.out
}
