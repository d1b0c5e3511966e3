//! Two hosts with a tunnel between them, and a router on the way, each in a network namespace of its own. They go with
//! [`Hosts`], also after a panic.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;

use super::host::{spawned_up, wait_until};
use crate::ran::{Ran, Scratch, TAMIS, fed, skipped, tamis};

/// Addresses of the hosts outside, and inside the tunnel.
pub(super) const OUTSIDE: [&str; 2] = ["192.0.2.1", "198.51.100.1"];
pub(super) const OUTSIDE_V6: [&str; 2] = ["2001:db8:a::1", "2001:db8:b::1"];
pub(super) const INSIDE: [&str; 2] = ["10.77.0.1", "10.77.0.2"];
pub(super) const INSIDE_V6: [&str; 2] = ["fd77::1", "fd77::2"];
/// Those of the router on either side.
const ROUTER: [(&str, &str); 2] =
    [("192.0.2.254", "2001:db8:a::fe"), ("198.51.100.254", "2001:db8:b::fe")];
pub(super) const PORT: u16 = 51_900;
const SIDES: [&str; 2] = ["a", "b"];

/// A connection that carries nothing for as long is broken.
const STALLED: Duration = Duration::from_secs(40);

/// The two, and what is between them.
pub(super) struct Hosts {
    names: [String; 2],
    pub(super) router: String,
    pub(super) folder: Scratch,
    up: [Option<Child>; 2],
}

impl Hosts {
    /// Makes hosts as [`Hosts::new`] does, if these programs are there, too.
    pub(super) fn with_tools(test: &str, tools: &[&str]) -> Option<Self> {
        for tool in tools {
            if Command::new(tool).arg("-V").output().is_err() {
                skipped(&format!("{test}: {tool} is not there"));
                return None;
            }
        }
        Self::new(test)
    }

    /// `None` where this machine has no namespaces for us; it says so.
    pub(super) fn new(test: &str) -> Option<Self> {
        let name = |side: &str| format!("{test}-{}-{side}", std::process::id());
        let hosts = Self {
            names: SIDES.map(name),
            router: name("r"),
            folder: Scratch::new(test),
            up: [None, None],
        };
        let all = [&hosts.names[0], &hosts.names[1], &hosts.router];
        let is_made = |name: &&String| {
            let made = Command::new("ip").args(["netns", "add", name]).output();
            made.is_ok_and(|made| made.status.success())
        };
        if !all.iter().all(is_made) {
            skipped(&format!("{test}: no network namespaces (not root, or no iproute2?)"));
            return None;
        }
        for name in all {
            let settings = ["conf.default.accept_dad=0", "conf.all.forwarding=1"];
            for setting in settings.map(|setting| format!("net.ipv6.{setting}")) {
                in_namespace(name, "sysctl", &["-qw", &setting]);
            }
            in_namespace(name, "sysctl", &["-qw", "net.ipv4.ip_forward=1"]);
            in_namespace(name, "ip", &["link", "set", "lo", "up"]);
        }
        (0..2).for_each(|side| hosts.lay(side));
        for side in SIDES {
            let key =
                tamis(&["tunnel", "keygen", "--out", &hosts.folder.file(&format!("{side}.key"))]);
            assert_eq!(key.code, Some(0));
        }
        Some(hosts)
    }

    /// Joins a host and the router.
    fn lay(&self, side: usize) {
        let (host, link) = (&self.names[side], format!("r{side}"));
        let (v4, v6) = ROUTER[side];
        let made = ["link", "add", "eth0", "type", "veth", "peer", "name", &link, "netns"];
        in_namespace(host, "ip", &[&made[..], &[&self.router]].concat());
        for (name, device, addresses) in [
            (host, "eth0", [format!("{}/24", OUTSIDE[side]), format!("{}/64", OUTSIDE_V6[side])]),
            (&self.router, &link, [format!("{v4}/24"), format!("{v6}/64")]),
        ] {
            for address in &addresses {
                in_namespace(name, "ip", &["address", "add", address, "dev", device]);
            }
            in_namespace(name, "ip", &["link", "set", device, "up"]);
        }
        in_namespace(host, "ip", &["route", "add", "default", "via", v4]);
        in_namespace(host, "ip", &["-6", "route", "add", "default", "via", v6]);
    }

    pub(super) fn does(&self, side: usize, program: &str, args: &[&str]) -> Ran {
        in_namespace(&self.names[side], program, args)
    }

    pub(super) fn routes(&self, program: &str, args: &[&str]) -> Ran {
        in_namespace(&self.router, program, args)
    }

    pub(super) fn name(&self, side: usize) -> &str {
        &self.names[side]
    }

    /// Makes one processor take what a device of a host receives.
    pub(super) fn on_one_processor(&self, side: usize, device: &str) {
        take_by_one_processor(&self.names[side], device);
    }

    /// Has each datagram be a packet of its own on the way, and hosts and router take them in their order.
    pub(super) fn one_by_one(&self) {
        for side in 0..2 {
            for feature in ["gso", "gro", "tx", "tx-udp-segmentation"] {
                self.does(side, "ethtool", &["-K", "eth0", feature, "off"]);
            }
            self.on_one_processor(side, "eth0");
            take_by_one_processor(&self.router, &format!("r{side}"));
        }
    }

    pub(super) fn config(&self, side: usize) -> String {
        self.folder.file(&format!("{}.toml", SIDES[side]))
    }

    /// The public half of a key.
    pub(super) fn public(&self, key: &str) -> String {
        let secret = std::fs::read(self.folder.file(key)).unwrap();
        fed(&["tunnel", "pubkey"], &secret).out.trim_end().to_owned()
    }

    /// Writes the configuration of a host; `more` is said of the tunnel, `peer` of the other host.
    pub(super) fn write(&self, side: usize, more: &str, peer: &str) {
        let other = SIDES[1 - side];
        let text = format!(
            "[tunnel]\nname = \"tam\"\nkey = \"{own}.key\"\nlisten = {PORT}\ncontrol = \"{own}.sock\"\n\
             address = [\"{}/24\", \"{}/64\"]\n{more}\n\
             [[peer]]\nname = \"{other}\"\nkey = \"{}\"\n{peer}\n",
            INSIDE[side],
            INSIDE_V6[side],
            self.public(&format!("{other}.key")),
            own = SIDES[side],
        );
        self.folder.write(&format!("{}.toml", SIDES[side]), text);
    }

    /// Has both speak to each other, the first to the second at this address.
    pub(super) fn join(&mut self, address: &str) {
        self.write(0, "", &format!("endpoint = \"{address}\"\n{}", allowed(1)));
        self.write(1, "", &allowed(0));
        (0..2).for_each(|side| self.up(side));
    }

    pub(super) fn up(&mut self, side: usize) {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[side], TAMIS, "tunnel", "up"]);
        let log = File::create(self.folder.file(&format!("{}.log", SIDES[side]))).unwrap();
        command.arg(self.config(side)).stdout(Stdio::piped()).stderr(log);
        self.up[side] = Some(spawned_up(command));
    }

    /// Ends it as a crash does.
    pub(super) fn kill(&mut self, side: usize) {
        let left = Command::new("ip").args(["netns", "pids", &self.names[side]]).output().unwrap();
        for process in String::from_utf8_lossy(&left.stdout).lines() {
            let _ = Command::new("kill").args(["-9", process]).status();
        }
        if let Some(mut child) = self.up[side].take() {
            let _ = child.wait();
        }
        // The last of its threads closes what it had open, after nothing else is seen of it.
        let socket = self.folder.file(&format!("{}.sock", SIDES[side]));
        wait_until("its end", || UnixStream::connect(&socket).is_err());
    }

    fn peers_of(&self, side: usize) -> Option<Value> {
        let ran = self.does(side, TAMIS, &["tunnel", "peers", &self.config(side), "--json"]);
        let document = (ran.code == Some(0)).then(|| ran.json())?;
        Some(document["tunnels"][0]["peers"].clone())
    }

    /// What a host's tunnel reports of all packets.
    pub(super) fn status(&self, side: usize) -> Value {
        let ran = self.does(side, TAMIS, &["tunnel", "status", &self.config(side), "--json"]);
        ran.json()["tunnels"][0]["status"].clone()
    }

    /// The other host, as a host reports it.
    pub(super) fn peer(&self, side: usize) -> Value {
        self.peers_of(side).expect("it is up")[0].clone()
    }

    /// Whether the other host answers within a second to one packet.
    pub(super) fn pings(&self, side: usize, to: &str, more: &[&str]) -> bool {
        let args = [&["-n", "-c", "1", "-W", "1"], more, &[to]].concat();
        self.does(side, "ping", &args).code == Some(0)
    }

    /// Sends bytes by TCP from one host to an address of the other, which is to get all of them.
    pub(super) fn transfer(&self, from: usize, to: &str, bytes: usize) {
        let place = SocketAddr::new(to.parse::<IpAddr>().unwrap(), 5_001);
        let listener = self.within(1 - from, move || TcpListener::bind(place).unwrap());
        let sent: Vec<u8> = (0..bytes).map(|at| (at / 251 + at) as u8).collect();
        let expected = sent.clone();
        let reader = thread::spawn(move || {
            let (mut stream, mut got) = (listener.accept().unwrap().0, Vec::new());
            stream.set_read_timeout(Some(STALLED)).unwrap();
            stream.read_to_end(&mut got).unwrap();
            assert!(got == expected, "{} of {} bytes", got.len(), expected.len());
        });
        let mut stream =
            self.within(from, move || TcpStream::connect_timeout(&place, STALLED).unwrap());
        stream.set_write_timeout(Some(STALLED)).unwrap();
        stream.write_all(&sent).unwrap();
        drop(stream);
        reader.join().unwrap();
    }

    /// Does something on a host.
    pub(super) fn within<T: Send + 'static>(
        &self,
        side: usize,
        run: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let namespace = File::open(format!("/run/netns/{}", self.names[side])).unwrap();
        let inside = thread::spawn(move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            run()
        });
        inside.join().unwrap()
    }
}

/// The addresses that a host may have, as its peer's configuration lists them.
pub(super) fn allowed(side: usize) -> String {
    format!("allowed = [\"{}/32\", \"{}/128\"]", INSIDE[side], INSIDE_V6[side])
}

fn in_namespace(name: &str, program: &str, args: &[&str]) -> Ran {
    Command::new("ip").args(["netns", "exec", name, program]).args(args).output().unwrap().into()
}

impl Drop for Hosts {
    fn drop(&mut self) {
        if thread::panicking() {
            for side in SIDES {
                let log = std::fs::read_to_string(self.folder.file(&format!("{side}.log")));
                eprintln!("{side}: {}", log.unwrap_or_default());
            }
        }
        for name in self.names.iter().chain([&self.router]) {
            let left = Command::new("ip").args(["netns", "pids", name]).output();
            let left = left.map(|output| output.stdout).unwrap_or_default();
            for process in String::from_utf8_lossy(&left).lines() {
                let _ = Command::new("kill").args(["-9", process]).status();
            }
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
        self.up.iter_mut().flatten().for_each(|child| drop(child.wait()));
    }
}

fn take_by_one_processor(namespace: &str, device: &str) {
    let write = format!("echo 1 > /sys/class/net/{device}/queues/rx-0/rps_cpus");
    let ran = in_namespace(namespace, "sh", &["-c", &write]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}
