//! `tamis run` between two hosts, each in a network namespace of its own: what they say to each other passes a wire
//! of packet sockets, or of AF_XDP, with the devices' offloads as they are. Needs root.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use crate::confined::gives_up_all;
use crate::ran::{Scratch, TAMIS, skipped, tamis};

const RULES: &str = "*filter\n:FORWARD DROP [0:0]\n\
    -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
    -A FORWARD -p icmp -j ACCEPT\n\
    -A FORWARD -p tcp -m tcp --dport 8000 -m conntrack --ctstate NEW -j ACCEPT\n\
    -A FORWARD -p tcp -j REJECT --reject-with tcp-reset\nCOMMIT\n";

const CONTROL: &str = "[control]\nsocket = \"c\"\n";

/// Two hosts, and a third namespace between them. They go with it.
pub(crate) struct Hosts {
    names: [String; 3],
    pub(crate) children: Vec<Child>,
}

impl Hosts {
    /// `None` where the machine has no namespaces for us.
    pub(crate) fn new(test: &str) -> Option<Self> {
        let name = |place| format!("tamis-{test}-{}-{place}", std::process::id());
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
    pub(crate) fn command(&self, place: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[place], program]);
        command
    }

    pub(crate) fn start(&mut self, mut command: Command) -> BufReader<std::process::ChildStderr> {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let err = BufReader::new(child.stderr.take().unwrap());
        self.children.push(child);
        err
    }

    /// Runs tamis between them, once it is ready.
    pub(crate) fn run(&mut self, config: &str) -> BufReader<std::process::ChildStderr> {
        let mut run = self.command(1, TAMIS);
        run.args(["run", config]);
        let mut says = self.start(run);
        let mut line = String::new();
        while line != "ready\n" {
            line.clear();
            assert!(says.read_line(&mut line).unwrap() > 0, "it ended before it was ready");
        }
        says
    }

    /// What a command in the namespace at a place says, and how it ends.
    pub(crate) fn says(&self, place: usize, program: &str, args: &[&str]) -> (String, Option<i32>) {
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

/// A configuration of a wire between the hosts.
pub(crate) fn between(folder: &Scratch, rules: &str, rest: &str) -> String {
    between_ports(folder, "kind = \"af_packet\"", rules, rest)
}

/// Writes a configuration of a wire between the hosts, with ports of a kind.
fn between_ports(folder: &Scratch, kind: &str, rules: &str, rest: &str) -> String {
    folder.write("rules.v4", rules);
    let ends = [("left", "m0"), ("right", "m1")].map(|(name, device)| {
        format!("[[port]]\nname = \"{name}\"\n{kind}\ndevice = \"{device}\"\n")
    });
    let wire = "[[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"rules.v4\"\n";
    folder.write("live.toml", format!("{}{wire}{rest}", ends.concat()))
}

/// Whether a program is there.
pub(crate) fn is_there(program: &str) -> bool {
    Command::new(program).arg("--help").output().is_ok()
}

#[test]
fn hosts_talk_through_a_wire() {
    hosts_talk("wire", "kind = \"af_packet\"", CONTROL);
}

/// Frames have only their bytes there: unfinished checksums are known by them.
#[test]
fn hosts_talk_through_af_xdp() {
    hosts_talk("xdp", "kind = \"af_xdp\"\nmode = \"native\"", CONTROL);
}

/// After all that can be given up was: a system call that is missing ends the run.
#[test]
fn hosts_talk_through_af_xdp_without_privileges() {
    if !gives_up_all("xdp-gives-up") {
        return skipped("hosts on a confined wire: this kernel lacks some of the confinement");
    }
    let confined = format!("{CONTROL}[privileges]\ndrop = \"required\"\n");
    hosts_talk("xdp-confined", "kind = \"af_xdp\"", &confined);
}

/// By ports of this kind.
fn hosts_talk(test: &str, kind: &str, rest: &str) {
    let lacking = ["ip", "curl", "ping", "python3"].iter().find(|program| !is_there(program));
    if let Some(program) = lacking {
        return skipped(&format!("hosts on a wire: {program} is not there"));
    }
    let Some(mut hosts) = Hosts::new(test) else {
        return skipped("hosts on a wire: no network namespaces (not root?)");
    };
    let folder = Scratch::new(test);
    let config = between_ports(&folder, kind, RULES, rest);
    let sent: Vec<u8> = (0..4_000_000_u32).flat_map(u32::to_le_bytes).collect();
    folder.write("sent", &sent);

    let mut serve = hosts.command(2, "python3");
    serve.args(["-m", "http.server", "8000"]).current_dir(folder.path());
    let mut server = hosts.start(serve);
    let mut tamis_says = hosts.run(&config);

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

/// As between two routers' ports: packets age and have to fit, and hosts get errors from the ports' addresses.
#[test]
fn packets_age_on_a_wire_and_hosts_are_told() {
    if let Some(program) = ["ip", "ping"].iter().find(|program| !is_there(program)) {
        return skipped(&format!("packets that age: {program} is not there"));
    }
    let Some(mut hosts) = Hosts::new("age") else {
        return skipped("packets that age: no network namespaces (not root?)");
    };
    let m = hosts.names[1].clone();
    assert!(ip(&format!("-n {m} link set m1 mtu 1400")));
    assert!(ip(&format!("-n {m} addr add 10.9.0.9/24 dev m0")));
    let folder = Scratch::new("wire-aging");
    // The kernel's order: FORWARD sees what is left of 64.
    folder.write(
        "rules.v4",
        "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -p icmp -m ttl --ttl-eq 63 -j ACCEPT\nCOMMIT\n",
    );
    let port = |name: &str, device: &str| {
        format!(
            "[[port]]\nname = \"{name}\"\nkind = \"af_packet\"\ndevice = \"{device}\"\naddress = [\"10.9.0.254\"]\n"
        )
    };
    let wire =
        "[[wire]]\nports = [\"left\", \"right\"]\nttl = \"lower\"\n[rules]\nip = \"rules.v4\"\n";
    let ends = port("left", "m0") + &port("right", "m1");
    let config = folder.write("live.toml", format!("{ends}{wire}"));

    let mut check = hosts.command(1, TAMIS);
    let checked = check.args(["run", &config, "--check"]).output().unwrap();
    let told = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(
        told.contains("live.toml:4: m0 has the address 10.9.0.9: its host answers as well"),
        "{told}"
    );
    assert!(!told.contains("m1 has"), "{told}");
    assert!(ip(&format!("-n {m} addr flush dev m0")));

    let mut run = hosts.command(1, TAMIS);
    run.args(["run", &config]);
    let mut tamis_says = hosts.start(run);
    let mut line = String::new();
    while line != "ready\n" {
        line.clear();
        assert!(tamis_says.read_line(&mut line).unwrap() > 0, "it ended before it was ready");
    }
    let ping = |more: &[&str]| {
        let args = [&["-c", "1", "-W", "5"], more, &["10.9.0.2"]].concat();
        hosts.says(0, "ping", &args).0
    };
    let text = ping(&["-t", "64"]);
    assert!(text.contains("ttl=63"), "{text}");
    let text = ping(&["-t", "1"]);
    assert!(text.contains("From 10.9.0.254") && text.contains("Time to live exceeded"), "{text}");
    let text = ping(&["-M", "do", "-s", "1400"]);
    assert!(text.contains("From 10.9.0.254") && text.contains("mtu = 1400"), "{text}");
    let pid = hosts.children[0].id();
    assert!(Command::new("kill").arg(pid.to_string()).status().unwrap().success());
    assert_eq!(hosts.children[0].wait().unwrap().code(), Some(0));
}

/// The bytes of a frame do not say all that a virtual link leaves undone.
#[test]
fn the_doctor_says_where_offloads_are_to_be_switched_off() {
    let Some(hosts) = Hosts::new("doctor") else {
        return skipped("offloads of other ends: no network namespaces (not root?)");
    };
    assert!(ip(&format!("-n {} link add p0 type veth peer name p1", hosts.names[1])));
    let folder = Scratch::new("wire-doctor");
    let config = between_ports(&folder, "kind = \"af_xdp\"", RULES, "");
    let text = std::fs::read_to_string(&config).unwrap().replace("\"m1\"", "\"p0\"");
    let config = folder.write("live.toml", text);
    let doctor = || hosts.says(1, TAMIS, &["doctor", &config]);
    let (text, code) = doctor();
    let line = |what: &str| text.lines().find(|line| line.starts_with(what)).unwrap().to_owned();
    assert_eq!(code, Some(0), "{text}");
    let elsewhere = "its other end, in another network namespace, may leave";
    assert!(line("af_xdp m0").contains(elsewhere), "{text}");
    let todo = "its other end p1 may leave checksums unfinished, superframes whole and VLAN tags \
        out: ethtool -K p1 tx off tso off gso off txvlan off";
    assert!(line("af_xdp p0").contains("works") && line("af_xdp p0").ends_with(todo), "{text}");
    if !is_there("ethtool") {
        return skipped("offloads that are off: ethtool is not there");
    }
    let off = "-K p1 tx off tso off gso off txvlan off".split(' ').collect::<Vec<_>>();
    assert_eq!(hosts.says(1, "ethtool", &off).1, Some(0));
    assert!(!doctor().0.contains("p1"), "it does not leave anything undone any more");
}
