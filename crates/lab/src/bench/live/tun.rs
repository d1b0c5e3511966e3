//! TCP between two hosts that each have a TUN device, and tamis between them: with what the kernel leaves unfinished
//! (superframes, checksums) and with the devices' offloads off.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::plan::Plan;
use crate::bench::document::Row;
use crate::bench::limit;

/// Bits per second in each direction, in turn; the peer is the same without offloads.
pub(super) fn row(tamis: &Path, plan: Plan) -> io::Result<Row> {
    let hosts = Hosts::new(tamis)?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in limit::rounds(plan.runs()) {
        with.push(hosts.rate(true, plan.seconds())?);
        without.push(hosts.rate(false, plan.seconds())?);
    }
    Ok(Row::new("live.forward.tun", "tamis", "bits/s", &with)
        .with("offload", true)
        .with("program", "iperf3")
        .beside("without", &with, &without))
}

/// Two namespaces with a device each, and the wire's between them.
struct Hosts {
    names: [String; 3],
    children: Vec<Child>,
    _folder: TempDir,
}

impl Hosts {
    fn new(tamis: &Path) -> io::Result<Self> {
        let folder = TempDir::new()?;
        fs::write(folder.path().join("rules.v4"), "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n")?;
        let config = folder.path().join("live.toml");
        let port = |name: &str, device: &str| {
            format!("[[port]]\nname = \"{name}\"\nkind = \"tun\"\ndevice = \"{device}\"\n")
        };
        let wire = "[[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"rules.v4\"\n";
        fs::write(&config, port("left", "t0") + &port("right", "t1") + wire)?;
        let names = ["a", "m", "b"].map(|name| format!("bench-{}-{name}", std::process::id()));
        let mut hosts = Self { names, children: Vec::new(), _folder: folder };
        for name in &hosts.names {
            ip(&["netns", "add", name])?;
        }
        hosts.lay(tamis, &config)?;
        let mut server = hosts.at(2, "iperf3");
        server.args(["-s"]).stdout(Stdio::null()).stderr(Stdio::null());
        hosts.children.push(server.spawn()?);
        thread::sleep(Duration::from_millis(500));
        Ok(hosts)
    }

    fn lay(&mut self, tamis: &Path, config: &Path) -> io::Result<()> {
        let mut command = self.at(1, &tamis.to_string_lossy());
        command.arg("run").arg(config).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let said = child.stderr.take().map(BufReader::new);
        self.children.push(child);
        let mut lines = said.into_iter().flat_map(BufRead::lines).map_while(Result::ok);
        if !lines.any(|line| line == "ready") {
            return Err(io::Error::other("tamis run ended before it was ready"));
        }
        for (place, device, address) in [(0, "t0", "10.9.0.1/24"), (2, "t1", "10.9.0.2/24")] {
            let name = &self.names[place];
            ip(&["-n", &self.names[1], "link", "set", device, "netns", name])?;
            ip(&["-n", name, "link", "set", device, "up"])?;
            ip(&["-n", name, "addr", "add", address, "dev", device])?;
        }
        Ok(())
    }

    fn at(&self, place: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[place], program]);
        command
    }

    /// Bits per second of one TCP connection.
    fn rate(&self, offloads: bool, seconds: f64) -> io::Result<f64> {
        let state = if offloads { "on" } else { "off" };
        for (place, device) in [(0, "t0"), (2, "t1")] {
            let mut command = self.at(place, "ethtool");
            command.args(["-K", device, "tx", state, "sg", state, "tso", state, "gso", state]);
            command.output()?;
        }
        let time = seconds.ceil().to_string();
        let output = self.at(0, "iperf3").args(["-J", "-c", "10.9.0.2", "-t", &time]).output()?;
        let document: Value = serde_json::from_slice(&output.stdout)?;
        let rate = document["end"]["sum_received"]["bits_per_second"].as_f64();
        rate.ok_or_else(|| io::Error::other(format!("iperf3: {}", document["error"])))
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        for name in &self.names {
            let _ = ip(&["netns", "del", name]);
        }
    }
}

fn ip(args: &[&str]) -> io::Result<()> {
    let output = Command::new("ip").args(args).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    output
        .status
        .success()
        .then_some(())
        .ok_or_else(|| io::Error::other(format!("ip {args:?}: {said}")))
}
