//! `tamis run` between two hosts, each in a network namespace of its own: real programs talk through a wire, by each
//! kind of port, with offloads and without. Needs root; what a test needs and does not find, it names and skips.
//!
//! Contract: namespaces are named after the process and the test, and go with [`Hosts`], also after a panic.

mod crafted;
mod ftp;
mod ordered;
mod rings;
mod series;
mod talk;

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::devices::comes_true;
use crate::ran::{Ran, Scratch, TAMIS, skipped, tamis};

/// Addresses of the hosts.
const LEFT: &str = "10.9.0.1";
const RIGHT: &str = "10.9.0.2";
const RIGHT_V6: &str = "fd09::2";

/// What joins the hosts to the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cable {
    /// `af_packet` on one end of a veth pair each.
    Veth { offloads: bool },
    /// `af_xdp` on one end of a veth pair each, without offloads.
    Xdp,
    /// A TUN device each, which the host has.
    Tun,
}

/// Two hosts, and a third namespace between them where tamis runs.
struct Hosts {
    cable: Cable,
    names: [String; 3],
    children: Vec<Child>,
    folder: Scratch,
    /// Standard error of the wire; closed, it would break what is written to it.
    wire: Option<(Child, BufReader<ChildStderr>)>,
}

impl Hosts {
    /// `None` where this machine has no namespaces for us, or lacks a program; it says so.
    fn new(test: &str, cable: Cable, programs: &[&str]) -> Option<Self> {
        if let Some(program) = programs.iter().find(|program| !is_there(program)) {
            skipped(&format!("{test}: {program} is not there"));
            return None;
        }
        let names = ["a", "m", "b"].map(|name| format!("{test}-{}-{name}", std::process::id()));
        let folder = Scratch::new(test);
        let hosts = Self { cable, names, children: Vec::new(), folder, wire: None };
        if !hosts.names.iter().all(|name| ip(&format!("netns add {name}"))) {
            skipped(&format!("{test}: no network namespaces (not root?)"));
            return None;
        }
        for name in &hosts.names {
            // No addresses of its own accord, and none to wait for.
            let settings = ["accept_dad=0", "addr_gen_mode=1", "router_solicitations=0"];
            for setting in settings.map(|setting| format!("net.ipv6.conf.default.{setting}")) {
                run("ip", &["netns", "exec", name, "sysctl", "-qw", &setting]);
            }
            run("ip", &["-n", name, "link", "set", "lo", "up"]);
        }
        match cable {
            Cable::Veth { offloads } => hosts.lay_veth(offloads),
            Cable::Xdp => hosts.lay_veth(false),
            Cable::Tun => {}
        }
        Some(hosts)
    }

    fn lay_veth(&self, offloads: bool) {
        let [a, m, b] = &self.names;
        for (host, device, end) in [(a, "a0", "m0"), (b, "b0", "m1")] {
            let pair =
                format!("link add {device} netns {host} type veth peer name {end} netns {m}");
            assert!(ip(&pair), "{pair}");
        }
        for (name, device) in [(a, "a0"), (m, "m0"), (m, "m1"), (b, "b0")] {
            if !offloads {
                let off = "rx off tx off sg off tso off gso off gro off";
                let of = ["netns", "exec", name, "ethtool", "-K", device];
                run("ip", &[&of[..], &off.split(' ').collect::<Vec<_>>()].concat());
            }
            assert!(ip(&format!("-n {name} link set {device} up")));
        }
        self.address("a0", "b0");
    }

    fn address(&self, left: &str, right: &str) {
        for (name, device, host) in [(&self.names[0], left, 1), (&self.names[2], right, 2)] {
            assert!(ip(&format!("-n {name} link set {device} up")));
            assert!(ip(&format!("-n {name} addr add 10.9.0.{host}/24 dev {device}")));
            assert!(ip(&format!("-n {name} addr add fd09::{host}/64 dev {device} nodad")));
        }
    }

    /// Starts tamis with these rules; `more` is what else its configuration says.
    fn wire(&mut self, rules: &str, rules6: &str, more: &str) {
        self.folder.write("rules.v4", rules);
        self.folder.write("rules.v6", rules6);
        let (kind, devices) = match self.cable {
            Cable::Veth { .. } => ("af_packet", ["m0", "m1"]),
            Cable::Xdp => ("af_xdp", ["m0", "m1"]),
            Cable::Tun => ("tun", ["t0", "t1"]),
        };
        let port = |name, device| {
            format!("[[port]]\nname = \"{name}\"\nkind = \"{kind}\"\ndevice = \"{device}\"\n")
        };
        let ports = port("left", devices[0]) + &port("right", devices[1]);
        let wire = "[[wire]]\nports = [\"left\", \"right\"]\n";
        let rules = "[rules]\nip = \"rules.v4\"\nip6 = \"rules.v6\"\n[control]\nsocket = \"c\"\n";
        let more = if more.is_empty() { wire } else { more };
        self.run_wire(&format!("{ports}{more}{rules}"));
        if self.cable == Cable::Tun {
            for (host, device) in [(0, "t0"), (2, "t1")] {
                let [from, to] = [1, host].map(|at: usize| &self.names[at]);
                assert!(ip(&format!("-n {from} link set {device} netns {to}")));
            }
            self.address("t0", "t1");
        }
    }

    fn run_wire(&mut self, config: &str) {
        let config = self.folder.write("live.toml", config);
        let mut command = self.command(1, TAMIS);
        let last = std::fs::File::create(self.folder.file("last.json")).unwrap();
        let mut child = command
            .args(["run", &config, "--json"])
            .stdout(last)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut says = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while line != "ready\n" {
            line.clear();
            assert!(says.read_line(&mut line).unwrap() > 0, "it ended before it was ready");
        }
        self.wire = Some((child, says));
    }

    /// A command in the namespace at a place: 0 and 2 are the hosts.
    fn command(&self, place: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[place], program]);
        command
    }

    /// Starts a program that ends with the hosts.
    fn serve(&mut self, place: usize, program: &str, args: &[&str]) {
        let mut command = self.command(place, program);
        command.args(args).current_dir(self.folder.path());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        self.children.push(child);
    }

    /// What a client says of a server that serves it alone: a server of many is not always back when the next one comes.
    fn served(&mut self, server: &[&str], port: u16, client: &[&str]) -> String {
        self.serve(2, server[0], &server[1..]);
        self.listens(2, port);
        let said = self.does(0, client[0], &client[1..]);
        let ended = self.children.pop().map(|mut child| child.wait().unwrap());
        assert!(ended.is_some_and(|ended| ended.success()), "{server:?}: {ended:?}");
        said
    }

    /// Waits until something listens at a TCP port of the host at a place.
    fn listens(&self, place: usize, port: u16) {
        for _ in 0..200 {
            let (listening, _) = self.says(place, "ss", &["-tlnH", &format!("sport = :{port}")]);
            if !listening.is_empty() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("nothing listens at {port}");
    }

    /// What a command in the namespace at a place says, and whether it went well.
    fn says(&self, place: usize, program: &str, args: &[&str]) -> (String, bool) {
        let output = self.command(place, program).args(args).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (String::from_utf8_lossy(&text).into_owned(), output.status.success())
    }

    /// Runs a command that has to go well.
    fn does(&self, place: usize, program: &str, args: &[&str]) -> String {
        let (text, is_well) = self.says(place, program, args);
        assert!(is_well, "{program} {args:?}: {text}");
        text
    }

    fn reach(&self, args: &[&str]) -> Ran {
        tamis(&[&["ctl", "--socket", &self.folder.file("c")], args].concat())
    }

    /// The rules as the wire counted them.
    fn counters(&self) -> String {
        self.reach(&["counters", "--save"]).out
    }

    /// What `tamis status` says of the frames once none is on its way; each has one fate.
    fn status(&self) -> Value {
        let mut status = Value::Null;
        comes_true("each frame has one fate", || {
            status = self.reach(&["--json", "status"]).json();
            has_settled(&status)
        });
        status
    }

    /// Stops the wire, which ends well.
    fn stop(&mut self) {
        self.status();
        self.end();
    }

    /// Stops the wire, whatever is on its way: what it says at its end.
    fn end(&mut self) -> Value {
        assert_eq!(self.reach(&["stop"]).code, Some(0));
        let (mut child, _) = self.wire.take().unwrap();
        assert!(child.wait().unwrap().success());
        let last = std::fs::read_to_string(self.folder.file("last.json")).unwrap();
        let last = serde_json::from_str(&last).unwrap();
        balances(&last);
        last
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let wire = self.wire.take().map(|(child, _)| child);
        for mut child in self.children.drain(..).chain(wire) {
            let _ = child.kill();
            let _ = child.wait();
        }
        for name in &self.names {
            // Whatever a program left running there.
            let left = Command::new("ip").args(["netns", "pids", name]).output();
            let left = left.map(|output| output.stdout).unwrap_or_default();
            for process in String::from_utf8_lossy(&left).lines() {
                run("kill", &["-9", process]);
            }
            ip(&format!("netns del {name}"));
        }
    }
}

/// Each frame has one fate.
fn balances(status: &Value) {
    status["wires"]
        .as_array()
        .unwrap()
        .iter()
        .for_each(|wire| assert!(is_balanced(wire), "{wire}"));
}

/// No frame is on its way.
fn has_settled(status: &Value) -> bool {
    let mut wires = status["wires"].as_array().unwrap().iter();
    wires.all(|wire| {
        is_balanced(wire) && wire["queue"]["bursts"].as_u64().is_none_or(|held| held == 0)
    })
}

/// Whether each frame of a direction has one fate.
fn is_balanced(wire: &Value) -> bool {
    let count = |key: &str| wire[key].as_u64().unwrap();
    let dropped = wire["dropped"].as_object().unwrap();
    let dropped: u64 = dropped.values().filter_map(Value::as_u64).sum();
    count("received") + count("made") == count("sent") + dropped
}

/// Frames of a direction that were dropped for a reason.
fn dropped(status: &Value, from: &str, reason: &str) -> u64 {
    let wires = status["wires"].as_array().unwrap();
    let wire = wires.iter().find(|wire| wire["in"] == from).unwrap();
    wire["dropped"][reason].as_u64().unwrap_or(0)
}

/// Packets of the rule with this text.
fn hits(saved: &str, rule: &str) -> u64 {
    let line = saved.lines().find(|line| line.ends_with(rule));
    let line = line.unwrap_or_else(|| panic!("no {rule} in {saved}"));
    line[1..].split(':').next().unwrap().parse().unwrap()
}

fn ip(arguments: &str) -> bool {
    run("ip", &arguments.split(' ').collect::<Vec<_>>())
}

fn run(program: &str, args: &[&str]) -> bool {
    let status =
        Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::path::Path::new(program).is_absolute() && std::path::Path::new(program).exists()
        || std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}
