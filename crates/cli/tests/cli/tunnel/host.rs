//! A host of its own, in a network namespace, for tunnels to be brought up on. It goes with [`Host`], also after a panic.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::ran::{Ran, Scratch, TAMIS, skipped};

/// A host with an interface, and a folder of its own.
pub(super) struct Host {
    pub(super) name: String,
    pub(super) folder: Scratch,
}

impl Host {
    pub(super) fn new(test: &str) -> Option<Self> {
        let name = format!("{test}-{}", std::process::id());
        let host = Self { name, folder: Scratch::new(test) };
        let is_made = Command::new("ip").args(["netns", "add", &host.name]).output();
        if !is_made.is_ok_and(|made| made.status.success()) {
            skipped(&format!("{test}: no network namespaces (not root, or no iproute2?)"));
            return None;
        }
        host.does("ip", &["link", "set", "lo", "up"]);
        host.does("ip", &["link", "add", "eth0", "type", "veth", "peer", "name", "eth1"]);
        host.does("ip", &["address", "add", "192.0.2.1/24", "dev", "eth0"]);
        host.does("ip", &["link", "set", "eth0", "up"]);
        host.does("ip", &["link", "set", "eth1", "up"]);
        host.does("ip", &["route", "add", "default", "via", "192.0.2.254"]);
        let key =
            crate::ran::tamis(&["tunnel", "keygen", "--out", &host.folder.file("office.key")]);
        assert_eq!(key.code, Some(0));
        Some(host)
    }

    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]).args(args);
        command
    }

    pub(super) fn says(&self, program: &str, args: &[&str]) -> Ran {
        self.command(program, args).output().unwrap().into()
    }

    pub(super) fn does(&self, program: &str, args: &[&str]) -> String {
        let ran = self.says(program, args);
        assert_eq!(ran.code, Some(0), "{program} {args:?}: {ran:?}");
        ran.out
    }

    /// All that a tunnel may change; link-local addresses come when they like.
    pub(super) fn seen(&self) -> String {
        let commands = [
            "-4 rule show",
            "-6 rule show",
            "-4 route show table all",
            "-o link show",
            "-o -4 address show",
        ];
        let all = commands.map(|command| self.does("ip", &command.split(' ').collect::<Vec<_>>()));
        let files = fs::read_dir(self.folder.path()).unwrap().flatten();
        let mut files: Vec<String> =
            files.map(|file| file.file_name().into_string().unwrap()).collect();
        files.sort();
        all.concat() + &files.join(" ")
    }

    /// A configuration with all there is to undo: a default route, a table of its own, commands.
    pub(super) fn config(&self, more: &str) -> String {
        let text = format!(
            "[tunnel]\nkey = \"office.key\"\naddress = [\"10.77.0.1/24\", \"fd77::1/64\"]\n\
             mtu = 1400\ncontrol = \"office.sock\"\n{more}\n[[peer]]\nname = \"home\"\n\
             key = \"3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=\"\nendpoint = \"192.0.2.7:51900\"\n\
             allowed = [\"0.0.0.0/0\", \"::/0\", \"10.77.0.2/32\", \"192.168.7.0/24\"]\n"
        );
        self.folder.write("office.toml", text)
    }

    /// Brings a tunnel up, and waits until it says so.
    pub(super) fn up(&self, config: &str) -> Child {
        let mut command = self.command(TAMIS, &["tunnel", "up", config]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        spawned_up(command)
    }
}

/// Starts a tunnel, whose standard output is a pipe, and waits until its device and routes are there, too.
pub(super) fn spawned_up(mut command: Command) -> Child {
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("next: ")), "it did not come up");
    child
}

impl Drop for Host {
    fn drop(&mut self) {
        let left = Command::new("ip").args(["netns", "pids", &self.name]).output();
        let left = left.map(|output| output.stdout).unwrap_or_default();
        for process in String::from_utf8_lossy(&left).lines() {
            let _ = Command::new("kill").args(["-9", process]).status();
        }
        let _ = Command::new("ip").args(["netns", "delete", &self.name]).status();
    }
}

/// Waits for what another process does.
pub(super) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
