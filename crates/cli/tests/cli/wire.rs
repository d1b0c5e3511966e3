//! `tamis run` between two hosts, each in a network namespace of its own: what they say to each other passes a wire
//! of packet sockets, or of AF_XDP, with the devices' offloads as they are. Needs root.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use crate::ran::{Scratch, TAMIS, skipped, tamis};

const RULES: &str = "*filter\n:FORWARD DROP [0:0]\n\
    -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
    -A FORWARD -p icmp -j ACCEPT\n\
    -A FORWARD -p tcp -m tcp --dport 8000 -m conntrack --ctstate NEW -j ACCEPT\n\
    -A FORWARD -p tcp -j REJECT --reject-with tcp-reset\nCOMMIT\n";

/// Two hosts, and a third namespace between them. They go with it.
struct Hosts {
    names: [String; 3],
    children: Vec<Child>,
}

impl Hosts {
    /// `None` where the machine has no namespaces for us.
    fn new(run: &str) -> Option<Self> {
        let name = |place| format!("tamis-{}-{run}-{place}", std::process::id());
        let names = ["a", "m", "b"].map(name);
        let hosts = Self { names, children: Vec::new() };
        let [a, m, b] = &hosts.names;
        let made = hosts.names.iter().all(|name| ip(&format!("netns add {name}")))
            && ip(&format!("link add a0 netns {a} type veth peer name m0 netns {m}"))
            && ip(&format!("link add b0 netns {b} type veth peer name m1 netns {m}"))
            && ip(&format!("-n {a} addr add 10.9.0.1/24 dev a0"))
            && ip(&format!("-n {b} addr add 10.9.0.2/24 dev b0"))
            && [(a, "a0"), (m, "m0"), (m, "m1"), (b, "b0")]
                .iter()
                .all(|(name, device)| ip(&format!("-n {name} link set {device} up")));
        made.then_some(hosts)
    }

    /// A command in the namespace at a place.
    fn command(&self, place: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[place], program]);
        command
    }

    fn start(&mut self, mut command: Command) -> BufReader<std::process::ChildStderr> {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let err = BufReader::new(child.stderr.take().unwrap());
        self.children.push(child);
        err
    }

    /// What a command in the namespace at a place says, and how it ends.
    fn says(&self, place: usize, program: &str, args: &[&str]) -> (String, Option<i32>) {
        let output = self.command(place, program).args(args).output().unwrap();
        (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        for name in &self.names {
            ip(&format!("netns del {name}"));
        }
    }
}

fn ip(arguments: &str) -> bool {
    let run = Command::new("ip").args(arguments.split(' ')).stderr(Stdio::null()).status();
    run.is_ok_and(|status| status.success())
}

/// Whether a program is there.
fn is_there(program: &str) -> bool {
    Command::new(program).arg("--help").output().is_ok()
}

#[test]
fn hosts_talk_through_a_wire() {
    hosts_talk("a", "kind = \"af_packet\"");
}

/// Frames have only their bytes there: unfinished checksums are known by them.
#[test]
fn hosts_talk_through_af_xdp() {
    hosts_talk("x", "kind = \"af_xdp\"\nmode = \"native\"");
}

/// By ports of this kind; namespaces have this in their names.
fn hosts_talk(run: &str, kind: &str) {
    let lacking = ["ip", "curl", "ping", "python3"].iter().find(|program| !is_there(program));
    if let Some(program) = lacking {
        return skipped(&format!("hosts on a wire: {program} is not there"));
    }
    let Some(mut hosts) = Hosts::new(run) else {
        return skipped("hosts on a wire: no network namespaces (not root?)");
    };
    let folder = Scratch::new(&format!("wire-{run}"));
    folder.write("rules.v4", RULES);
    let ends = [("left", "m0"), ("right", "m1")].map(|(name, device)| {
        format!("[[port]]\nname = \"{name}\"\n{kind}\ndevice = \"{device}\"\n")
    });
    let wire = "[[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"rules.v4\"\n\
        [control]\nsocket = \"c\"\n";
    let config = folder.write("live.toml", format!("{}{wire}", ends.concat()));
    let sent: Vec<u8> = (0..4_000_000_u32).flat_map(u32::to_le_bytes).collect();
    folder.write("sent", &sent);

    let mut serve = hosts.command(2, "python3");
    serve.args(["-m", "http.server", "8000"]).current_dir(folder.path());
    let mut server = hosts.start(serve);
    let mut run = hosts.command(1, TAMIS);
    run.args(["run", &config]);
    let mut tamis_says = hosts.start(run);
    let mut line = String::new();
    while line != "ready\n" {
        line.clear();
        assert!(tamis_says.read_line(&mut line).unwrap() > 0, "it ended before it was ready");
    }

    let (text, code) = hosts.says(0, "ping", &["-c", "2", "-i", "0.2", "10.9.0.2"]);
    assert_eq!(code, Some(0), "{text}");
    let got = folder.file("got");
    let url = "http://10.9.0.2:8000/sent";
    let fetch =
        ["-s", "--retry", "20", "--retry-connrefused", "--retry-delay", "1", "-o", &got, url];
    assert_eq!(hosts.says(0, "curl", &fetch).1, Some(0));
    assert!(std::fs::read(&got).unwrap() == sent, "every byte came");
    // Refused at once, by a reset, not by silence.
    let refused = hosts.says(0, "curl", &["-s", "-m", "20", "http://10.9.0.2:9/"]);
    assert_eq!(refused.1, Some(7), "the connection is refused");

    let socket = folder.file("c");
    let saved = tamis(&["ctl", "--socket", &socket, "counters", "--save"]).out;
    assert!(saved.contains("[1:60] -A FORWARD -p tcp -j REJECT"), "{saved}");
    let status = tamis(&["ctl", "--socket", &socket, "--json", "status"]).json();
    for wire in status["wires"].as_array().unwrap() {
        let count = |key: &str| wire[key].as_u64().unwrap();
        let dropped = wire["dropped"].as_object().unwrap();
        let dropped: u64 = dropped.values().filter_map(|value| value.as_u64()).sum();
        assert_eq!(count("received") + count("made"), count("sent") + dropped, "{wire}");
    }
    assert_eq!(tamis(&["ctl", "--socket", &socket, "stop"]).code, Some(0));
    assert_eq!(hosts.children[1].wait().unwrap().code(), Some(0));
    drop(hosts);
    let mut rest = String::new();
    server.read_to_string(&mut rest).unwrap();
    tamis_says.read_to_string(&mut rest).unwrap();
}
