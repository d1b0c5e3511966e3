//! `tamis run` on devices that lose their link, go away and come back, with two workers. Two hosts, each in a network
//! namespace of its own, ping each other through it. Needs root.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::ran::{Scratch, TAMIS, skipped, tamis};

const RULES: &str = "*filter\n:FORWARD DROP [0:0]\n\
    -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
    -A FORWARD -p icmp -m conntrack --ctstate NEW -j ACCEPT\nCOMMIT\n";

/// Two hosts and a third namespace between them, which go with it, and the run.
pub(crate) struct Stage {
    pub(crate) names: [String; 3],
    pub(crate) folder: Scratch,
    pub(crate) run: Option<Child>,
    /// What it said once it was ready.
    said: Arc<Mutex<String>>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(run) = &mut self.run {
            let _ = run.kill();
            let _ = run.wait();
        }
        for name in &self.names {
            ip(&format!("netns del {name}"));
        }
    }
}

pub(crate) fn ip(arguments: &str) -> bool {
    let run = Command::new("ip").args(arguments.split(' ')).stderr(Stdio::null()).status();
    run.is_ok_and(|status| status.success())
}

impl Stage {
    /// `None` where the machine has no namespaces for us.
    pub(crate) fn new(test: &str) -> Option<Self> {
        let names =
            ["a", "m", "b"].map(|name| format!("tamis-{test}-{}-{name}", std::process::id()));
        let stage = Self { names, folder: Scratch::new(test), run: None, said: Arc::default() };
        let [_, m, b] = &stage.names;
        let made = stage.names.iter().all(|name| ip(&format!("netns add {name}")))
            && stage.plug_left()
            && ip(&format!("link add b0 netns {b} type veth peer name m1 netns {m}"))
            && ip(&format!("-n {b} addr add 10.9.0.2/24 dev b0"))
            && [(m, "m1"), (b, "b0")]
                .iter()
                .all(|(name, device)| ip(&format!("-n {name} link set {device} up")));
        made.then_some(stage)
    }

    /// Makes the left device, and its host's.
    pub(crate) fn plug_left(&self) -> bool {
        let [a, m, _] = &self.names;
        ip(&format!("link add a0 netns {a} type veth peer name m0 netns {m}"))
            && ip(&format!("-n {a} addr add 10.9.0.1/24 dev a0"))
            && ip(&format!("-n {m} link set m0 up"))
            && ip(&format!("-n {a} link set a0 up"))
    }

    /// Starts two workers, until they are ready.
    fn start(&mut self, wire: &str) {
        self.start_with("kind = \"af_packet\"", wire, "[workers]\ncount = 2\n");
    }

    /// Starts a wire between ports of this kind with the rest of a configuration, until it says that it is ready.
    pub(crate) fn start_with(&mut self, kind: &str, wire: &str, rest: &str) {
        self.folder.write("rules.v4", RULES);
        let config = self.folder.write(
            "live.toml",
            format!(
                "[[port]]\nname = \"left\"\n{kind}\ndevice = \"m0\"\n\
                 [[port]]\nname = \"right\"\n{kind}\ndevice = \"m1*\"\n\
                 [[wire]]\nports = [\"left\", \"right\"]\n{wire}\n[rules]\nip = \"rules.v4\"\n\
                 {rest}[control]\nsocket = \"c\"\n"
            ),
        );
        self.launch(&config);
    }

    /// Starts with this configuration, until it says that it is ready.
    pub(crate) fn launch(&mut self, config: &str) {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[1], TAMIS, "run", config]);
        let mut run = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut says = BufReader::new(run.stderr.take().unwrap());
        self.run = Some(run);
        let mut line = String::new();
        while line != "ready\n" {
            line.clear();
            assert!(says.read_line(&mut line).unwrap() > 0, "it ended before it was ready");
        }
        let said = Arc::clone(&self.said);
        let keep = move |line: String| *said.lock().unwrap() += &(line + "\n");
        thread::spawn(move || says.lines().map_while(Result::ok).for_each(keep));
    }

    /// The run's process.
    pub(crate) fn pid(&self) -> u32 {
        self.run.as_ref().unwrap().id()
    }

    /// How often it has said this since it was ready.
    pub(crate) fn said(&self, what: &str) -> usize {
        self.said.lock().unwrap().matches(what).count()
    }

    pub(crate) fn pings(&self) -> bool {
        let mut ping = Command::new("ip");
        ping.args(["netns", "exec", &self.names[0], "ping", "-c", "1", "-W", "1", "10.9.0.2"]);
        ping.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    }

    pub(crate) fn status(&self) -> Value {
        tamis(&["ctl", "--socket", &self.folder.file("c"), "--json", "status"]).json()
    }

    /// States of both ports.
    pub(crate) fn states(&self) -> [String; 2] {
        let status = self.status();
        [0, 1].map(|port| status["ports"][port]["state"].as_str().unwrap_or_default().to_owned())
    }

    /// Stops it; every frame is accounted for, once none is on its way: the kernels of its neighbours send some by
    /// themselves.
    pub(crate) fn stop(&mut self) {
        comes_true("every frame is accounted for", || {
            self.status()["wires"].as_array().unwrap().iter().all(|wire| {
                let count = |key: &str| wire[key].as_u64().unwrap();
                let dropped = wire["dropped"].as_object().unwrap();
                let dropped: u64 = dropped.values().filter_map(Value::as_u64).sum();
                count("received") + count("made") == count("sent") + dropped
            })
        });
        let socket = self.folder.file("c");
        assert_eq!(tamis(&["ctl", "--socket", &socket, "stop"]).code, Some(0));
        assert_eq!(self.run.as_mut().unwrap().wait().unwrap().code(), Some(0));
        self.run = None;
    }
}

/// Looks until it is so.
#[track_caller]
pub(crate) fn comes_true(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn stage(test: &str) -> Option<Stage> {
    let stage = Stage::new(test);
    if stage.is_none() {
        skipped("devices that go: no network namespaces (not root?)");
    }
    stage
}

#[test]
fn a_device_that_goes_is_waited_for_and_opened_again() {
    let Some(mut stage) = stage("gone") else { return };
    stage.start("");
    let status = stage.status();
    assert_eq!(status["workers"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&status["ports"][1]["device"], &status["ports"][1]["idle_latency_us"]),
        (&"m1".into(), &1000.into())
    );
    goes_and_comes_back(&mut stage);
}

/// The kernel shares frames out as the workers do: what tracking ties together comes to its owner at once.
#[test]
fn frames_of_connections_come_to_their_owners() {
    let Some(mut stage) = stage("owners") else { return };
    // Packets that their kernels send on their own belong to no connection.
    for name in &stage.names {
        let off = "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6";
        let set = Command::new("ip").args(["netns", "exec", name, "sh", "-c", off]).status();
        assert!(set.unwrap().success());
    }
    let wire = "[[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"tracks.v4\"\n";
    let device = |name, device| {
        format!("[[port]]\nname = \"{name}\"\nkind = \"af_packet\"\ndevice = \"{device}\"\n")
    };
    let ports = [device("left", "m0"), device("right", "m1")].concat();
    stage.folder.write(
        "tracks.v4",
        "*filter\n:FORWARD DROP [0:0]\n\
         -A FORWARD -m conntrack --ctstate NEW,ESTABLISHED -j ACCEPT\nCOMMIT\n",
    );
    let config = stage.folder.write(
        "live.toml",
        format!("{ports}{wire}[workers]\ncount = 2\n[control]\nsocket = \"c\"\n"),
    );
    stage.launch(&config);
    clients_ping(&stage);
    for wire in stage.status()["wires"].as_array().unwrap() {
        assert!(wire["received"].as_u64().unwrap() >= 16, "{wire}");
        assert_eq!(wire["taken_over"], 0, "{wire}");
    }
    stage.stop();
}

/// Three workers and two queues: the third one has what the others hand over to it.
#[test]
fn a_worker_without_a_queue_takes_what_is_handed_over() {
    let Some(mut stage) = stage("queues") else { return };
    stage.start_with("kind = \"af_packet\"\nqueues = 2", "", "[workers]\ncount = 3\n");
    clients_ping(&stage);
    let status = stage.status();
    assert_eq!(status["workers"].as_array().unwrap().len(), 3);
    for wire in status["wires"].as_array().unwrap() {
        assert!(wire["received"].as_u64().unwrap() >= 16, "{wire}");
        assert_ne!(wire["taken_over"], 0, "{wire}");
    }
    goes_and_comes_back(&mut stage);
}

/// Sixteen addresses of the left host ping the right one.
fn clients_ping(stage: &Stage) {
    let a = stage.names[0].clone();
    for client in 11..27 {
        let address = format!("10.9.0.{client}");
        assert!(ip(&format!("-n {a} addr add {address}/24 dev a0")));
        let ping = ["netns", "exec", &a, "ping", "-c", "1", "-W", "1", "-I", &address, "10.9.0.2"];
        comes_true("it is answered", || {
            Command::new("ip").args(ping).stdout(Stdio::null()).status().unwrap().success()
        });
    }
}

/// The port has one queue, so that the workers share it; its program is attached again.
#[test]
fn a_device_of_af_xdp_that_goes_is_waited_for_and_attached_again() {
    let Some(mut stage) = stage("gone-xdp") else { return };
    let kept = "[workers]\ncount = 2\n[privileges]\ndrop = \"off\"\n";
    stage.start_with("kind = \"af_xdp\"", "", kept);
    assert_eq!(stage.status()["ports"][1]["lost"], 0);
    goes_and_comes_back(&mut stage);
}

/// Down and up, then away and back: frames pass again each time.
pub(crate) fn goes_and_comes_back(stage: &mut Stage) {
    assert!(stage.pings());

    // Down, it stays the port's.
    let m = stage.names[1].clone();
    assert!(ip(&format!("-n {m} link set m0 down")));
    comes_true("left is down", || stage.states()[0] == "down");
    assert!(ip(&format!("-n {m} link set m0 up")));
    comes_true("both are up", || stage.states() == ["up", "up"]);
    comes_true("frames pass again", || stage.pings());

    assert!(ip(&format!("-n {m} link del m0")));
    comes_true("left is gone", || stage.states() == ["gone", "up"]);
    // What is for it meanwhile is dropped for that.
    let unheard = ["netns", "exec", &stage.names[2], "ping", "-c", "1", "-W", "1", "10.9.0.1"];
    let dropped = || stage.status()["wires"][1]["dropped"]["device"].as_u64().unwrap_or(0);
    comes_true("what is for it is dropped", || {
        let _ = Command::new("ip").args(unheard).stdout(Stdio::null()).status();
        dropped() > 0
    });
    assert!(stage.plug_left());
    comes_true("left is up again", || stage.states() == ["up", "up"]);
    comes_true("frames pass again", || stage.pings());
    stage.stop();
}

#[test]
fn a_link_that_is_lost_is_passed_on_where_the_wire_says_so() {
    let Some(mut stage) = stage("link") else { return };
    stage.start("link = \"pass\"");
    assert!(stage.pings());
    let (a, b) = (stage.names[0].clone(), stage.names[2].clone());
    // The host at the other end sees its carrier go, too.
    let has_carrier = || {
        let shown = Command::new("ip").args(["-n", &a, "link", "show", "a0"]).output().unwrap();
        String::from_utf8_lossy(&shown.stdout).contains("LOWER_UP")
    };
    assert!(has_carrier());
    assert!(ip(&format!("-n {b} link set b0 down")));
    comes_true("the other side loses its carrier", || !has_carrier());
    assert!(ip(&format!("-n {b} link set b0 up")));
    comes_true("and has it again", has_carrier);
    comes_true("frames pass again", || stage.pings());
    assert!(ip(&format!("-n {b} link set b0 down")));
    comes_true("it goes once more", || !has_carrier());
    stage.stop();
    comes_true("nothing stays down after the run", has_carrier);
}
