//! Connections over a restart of `tamis run`: written at its end, read at the next start, missing after a crash.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::ran::{Ran, Scratch, skipped, tamis};
use crate::started::started;
use crate::wire::{Hosts, between, is_there};

/// Only the queried host may answer, and the querying host is translated.
const RULES: &str = "*nat\n:POSTROUTING ACCEPT [0:0]\n\
    -A POSTROUTING -o right -j SNAT --to-source 192.0.2.1\nCOMMIT\n\
    *filter\n:FORWARD DROP [0:0]\n-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n\
    -A FORWARD -i left -p udp --dport 53 -m conntrack --ctstate NEW -j ACCEPT\nCOMMIT\n";

/// A wire whose left port, or right one, has a capture to read.
struct Wire(Scratch);

impl Wire {
    fn new(test: &str) -> Self {
        let wire = Self(Scratch::new(test));
        wire.0.write("rules.v4", RULES);
        wire.0.capture("asks.pcap", "eth0", &["udp 10.0.0.7:4000 > 198.51.100.9:53"]);
        wire.0.capture("answers.pcap", "eth0", &["udp 198.51.100.9:53 > 192.0.2.1:4000"]);
        wire
    }

    fn config(&self, ports: [&str; 2], conntrack: &str) -> String {
        let ports = ["left", "right"]
            .iter()
            .zip(ports)
            .map(|(name, port)| format!("[[port]]\nname = \"{name}\"\n{port}\n"));
        let text = format!(
            "{}[[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"rules.v4\"\n\
             [conntrack]\nfile = \"connections.txt\"\n{conntrack}",
            ports.collect::<String>()
        );
        self.0.write("live.toml", text)
    }

    /// The host on the left asks.
    fn asks(&self, conntrack: &str) -> Ran {
        let left = "kind = \"pcap\"\nfile = \"asks.pcap\"";
        let right = "kind = \"pcap\"\nout = \"asked.pcap\"";
        tamis(&["run", &self.config([left, right], conntrack), "--json"])
    }

    /// The host on the right answers.
    fn answers(&self, conntrack: &str) -> Ran {
        let left = "kind = \"pcap\"\nout = \"answered.pcap\"";
        let right = "kind = \"pcap\"\nfile = \"answers.pcap\"";
        tamis(&["run", &self.config([left, right], conntrack), "--json"])
    }

    fn kept(&self) -> String {
        fs::read_to_string(self.0.file("connections.txt")).unwrap()
    }
}

/// How many frames a run sent back to the left, and what it dropped of them.
fn back(ran: &Ran) -> (u64, String) {
    let status = ran.json();
    let wire = &status["wires"][1];
    (wire["sent"].as_u64().unwrap(), wire["dropped"].to_string())
}

#[test]
fn a_connection_and_its_translation_outlast_a_restart() {
    let wire = Wire::new("restart");
    let asked = wire.asks("");
    assert_eq!(asked.json()["resumed"]["connections"], 0);
    let kept = wire.kept();
    let line = kept.lines().nth(1).unwrap();
    assert!(kept.starts_with("# tamis connections/1 at="), "{kept}");
    assert!(line.contains("src=198.51.100.9 dst=192.0.2.1 sport=53 dport=4000"), "{line}");

    let answered = wire.answers("");
    assert_eq!(answered.json()["resumed"]["connections"], 1);
    assert_eq!(back(&answered), (1, "{}".to_owned()));
    let capture = fs::read(wire.0.file("answered.pcap")).unwrap();
    let client = [198, 51, 100, 9, 10, 0, 0, 7];
    assert!(capture.windows(8).any(|bytes| bytes == client), "it goes to who asked");
    // It was answered by now, and counted.
    assert!(!wire.kept().contains("UNREPLIED"));
    assert_eq!(wire.kept().matches("packets=1 ").count(), 2, "{}", wire.kept());
}

/// Each worker writes the connections that it owns, and finds its connections in the file again.
#[test]
fn connections_of_several_workers_outlast_a_restart() {
    const FLOWS: u16 = 64;
    let wire = Wire::new("restart-workers");
    let specs = |spec: fn(u16) -> String| (4000..4000 + FLOWS).map(spec).collect::<Vec<_>>();
    let asks = specs(|port| format!("udp 10.0.0.7:{port} > 198.51.100.9:53"));
    let answers = specs(|port| format!("udp 198.51.100.9:53 > 192.0.2.1:{port}"));
    for (name, specs) in [("asks.pcap", asks), ("answers.pcap", answers)] {
        let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
        wire.0.capture(name, "eth0", &specs);
    }
    let workers = "[workers]\ncount = 2\n[privileges]\ndrop = \"auto\"\n";
    let asked = wire.asks(workers).json();
    assert_eq!(asked["workers"].as_array().unwrap().len(), 2, "both evaluate");
    let kept = wire.kept();
    assert_eq!(kept.matches("UNREPLIED").count(), usize::from(FLOWS), "{kept}");
    let answered = wire.answers(workers);
    assert_eq!(answered.json()["resumed"]["connections"], FLOWS);
    assert_eq!(back(&answered), (FLOWS.into(), "{}".to_owned()));
    assert!(!wire.kept().contains("UNREPLIED"));
    // As many as there are, whatever their number was.
    assert_eq!(wire.answers("").json()["resumed"]["connections"], FLOWS);
}

#[test]
fn without_the_file_an_answer_is_nobodys() {
    let wire = Wire::new("restart-without");
    wire.asks("");
    fs::remove_file(wire.0.file("connections.txt")).unwrap();
    assert_eq!(back(&wire.answers("")), (0, "{\"policy\":1}".to_owned()));
}

#[test]
fn a_crash_leaves_no_file_and_grace_goes_on_without_it() {
    let wire = Wire::new("restart-crash");
    wire.asks("");
    let loopback = "kind = \"loopback\"";
    let run = started(&wire.config([loopback, loopback], ""));
    let file = wire.0.file("connections.txt");
    assert!(!Path::new(&file).exists(), "the run has them");
    run.kill();
    assert!(!Path::new(&file).exists());

    let answered = wire.answers("grace = 30");
    assert_eq!(answered.json()["resumed"]["grace"], 30);
    assert_eq!(back(&answered), (1, "{}".to_owned()));
    // With the file there is no crash to be graceful about.
    let again = wire.answers("grace = 30");
    assert_eq!(again.json()["resumed"]["grace"], 0);
}

/// The file has all that there were, so there is nothing to be graceful about.
#[test]
fn what_the_file_does_not_have_is_not_picked_up() {
    let wire = Wire::new("restart-no-grace");
    wire.asks("");
    let heading = wire.kept().lines().next().unwrap().to_owned();
    wire.0.write("connections.txt", format!("{heading}\n"));
    assert_eq!(back(&wire.answers("grace = 30")), (0, "{\"policy\":1}".to_owned()));
}

#[test]
fn what_is_picked_up_is_translated_as_if_it_began() {
    let wire = Wire::new("restart-translated");
    let asked = wire.asks("grace = 30");
    assert_eq!(asked.json()["wires"][0]["sent"], 1);
    let capture = fs::read(wire.0.file("asked.pcap")).unwrap();
    let translated = [192, 0, 2, 1, 198, 51, 100, 9];
    assert!(capture.windows(8).any(|bytes| bytes == translated));
}

#[test]
fn what_cannot_start_leaves_the_connections() {
    let wire = Wire::new("restart-refused");
    wire.asks("");
    let kept = wire.kept();
    let looped = "*filter\n:FORWARD DROP [0:0]\n:a - [0:0]\n:b - [0:0]\n\
        -A FORWARD -j a\n-A a -j b\n-A b -j a\nCOMMIT\n";
    wire.0.write("rules.v4", looped);
    assert_eq!(wire.answers("").code, Some(2));
    assert_eq!(wire.kept(), kept);
    wire.0.write("rules.v4", RULES);
    assert_eq!(back(&wire.answers("")).0, 1);
}

#[test]
fn what_is_no_connection_is_told_and_what_is_no_such_file_is_refused() {
    let wire = Wire::new("restart-bad");
    wire.asks("");
    wire.0.write("connections.txt", wire.kept().replacen("sport=4000", "sport=x", 1));
    let answered = wire.answers("");
    let told =
        "connections.txt:2:57: expected sport=PORT, found \"sport=x\": this connection is lost";
    assert!(answered.err.contains(told), "{}", answered.err);
    assert_eq!(back(&answered).0, 0);

    wire.0.write("connections.txt", RULES);
    let refused = wire.answers("");
    let line = refused.refusal().to_owned();
    assert!(line.contains("live.toml:14:8: "), "{line}");
    assert!(line.contains("connections.txt:1:1: expected # tamis connections/1"), "{line}");
    assert_eq!(wire.kept(), RULES, "it is left alone");
}

/// A connection begins with a SYN from the left, and has another address on the right.
const DOWNLOAD: &str = "*nat\n:POSTROUTING ACCEPT [0:0]\n\
    -A POSTROUTING -o right -p tcp -j SNAT --to-source 10.9.0.77\nCOMMIT\n\
    *filter\n:FORWARD DROP [0:0]\n-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n\
    -A FORWARD -i left -p tcp --dport 8000 --syn -m conntrack --ctstate NEW -j ACCEPT\nCOMMIT\n";

#[test]
fn a_download_goes_on_over_a_restart() {
    let lacking = ["ip", "curl", "python3"].iter().find(|program| !is_there(program));
    if let Some(program) = lacking {
        return skipped(&format!("a download over a restart: {program} is not there"));
    }
    let Some(mut hosts) = Hosts::new("restart") else {
        return skipped("a download over a restart: no network namespaces (not root?)");
    };
    let folder = Scratch::new("restart-download");
    let rest = "[conntrack]\nfile = \"connections.txt\"\n[control]\nsocket = \"c\"\n";
    let config = between(&folder, DOWNLOAD, rest);
    // More than the buffers of both ends take: the server still has some to send when tamis ends.
    let sent: Vec<u8> = (0..6_000_000_u32).flat_map(u32::to_le_bytes).collect();
    folder.write("sent", &sent);
    let mut serve = hosts.command(2, "python3");
    serve.args(["-m", "http.server", "8000"]).current_dir(folder.path());
    let _server = hosts.start(serve);
    // Nobody answers for the address that the client has on the right.
    let (link, _) = hosts.says(0, "cat", &["/sys/class/net/a0/address"]);
    let (_, code) =
        hosts.says(2, "ip", &["neigh", "add", "10.9.0.77", "lladdr", link.trim(), "dev", "b0"]);
    assert_eq!(code, Some(0));

    let _says = hosts.run(&config);
    let got = folder.file("got");
    let url = "http://10.9.0.2:8000/sent";
    let mut fetch = hosts.command(0, "curl");
    fetch.args(["-s", "--retry", "20", "--retry-connrefused", "--retry-delay", "1"]);
    // Tried again is what begins before the server listens, not what comes slowly.
    fetch.args(["--retry-max-time", "30", "-m", "600", "--limit-rate", "8M", "-o", &got, url]);
    let mut fetch = fetch.spawn().unwrap();
    while fs::metadata(&got).map_or(0, |file| file.len()) < 100_000 {
        assert!(fetch.try_wait().unwrap().is_none(), "it ended too early");
        thread::sleep(Duration::from_millis(10));
    }
    let run = hosts.children.last_mut().unwrap();
    let signal = format!("kill -TERM {}", run.id());
    assert!(Command::new("sh").args(["-c", &signal]).status().unwrap().success());
    assert_eq!(run.wait().unwrap().code(), Some(0));
    let kept = fs::read_to_string(folder.file("connections.txt")).unwrap();
    assert!(kept.contains("ESTABLISHED") && kept.contains("dst=10.9.0.77"), "{kept}");

    let _says = hosts.run(&config);
    assert_eq!(fetch.wait().unwrap().code(), Some(0));
    assert!(fs::read(&got).unwrap() == sent, "every byte came");
}
