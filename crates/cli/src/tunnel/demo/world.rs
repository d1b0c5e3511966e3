//! [`World`]: the namespaces, the network between them, and the processes in them.

use std::fmt;
use std::fs::{self, DirBuilder, File};
use std::io::{BufRead, BufReader, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::super::host::{ask_to_end, ip};
use super::files::{self, HOSTS, Host};
use crate::screen;

/// How long a connection is waited for: a dropped SYN is sent again after a second.
const PATIENCE: Duration = Duration::from_millis(1500);

/// How long a tunnel may take over its end: longer than it gives the process that moves its packets.
const TO_END: Duration = Duration::from_secs(15);

/// What a connection comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Knocked {
    /// Somebody answered, if only that nobody listens there.
    Answered,
    /// Nobody did.
    Silence,
}

impl fmt::Display for Knocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answered => "answered (nobody listens there, and says so)",
            Self::Silence => "no answer",
        })
    }
}

/// What is made, and goes with this.
pub(super) struct World {
    folder: PathBuf,
    /// With the network's as the last one.
    names: Vec<String>,
    tunnels: Vec<Child>,
}

impl World {
    /// Makes hosts that reach each other, and writes their files.
    ///
    /// # Errors
    /// A command failed; what it made is gone again.
    pub(super) fn make() -> Result<Self> {
        let process = std::process::id();
        let folder = std::env::temp_dir().join(format!("tamis-demo-{process}"));
        DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .with_context(|| folder.display().to_string())?;
        let mut world = Self { folder, names: Vec::new(), tunnels: Vec::new() };
        files::write(&world.folder)?;
        for name in HOSTS.iter().map(|host| host.name).chain(["internet"]) {
            let name = format!("tamis-demo-{process}-{name}");
            ip(&["netns", "add", &name])?;
            world.names.push(name.clone());
            ip(&["-n", &name, "link", "set", "lo", "up"])?;
        }
        let network = world.names[HOSTS.len()].clone();
        ip(&["-n", &network, "link", "add", "shared", "type", "bridge"])?;
        ip(&["-n", &network, "link", "set", "shared", "up"])?;
        for (host, name) in HOSTS.iter().zip(&world.names) {
            let pair = ["link", "add", "eth0", "netns", name, "type", "veth", "peer", "name"];
            ip(&[&pair[..], &[host.name, "netns", &network]].concat())?;
            ip(&["-n", &network, "link", "set", host.name, "master", "shared", "up"])?;
            ip(&["-n", name, "address", "add", &format!("{}/24", host.outer), "dev", "eth0"])?;
            ip(&["-n", name, "link", "set", "eth0", "up"])?;
        }
        Ok(world)
    }

    /// A file of it.
    pub(super) fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn namespace(&self, host: Host) -> Result<&str> {
        let place = HOSTS.iter().position(|other| other.name == host.name);
        let name = place.and_then(|place| self.names.get(place));
        name.map(String::as_str).context("no such namespace")
    }

    /// A program in a host's namespace, in a process group of its own: it ends when this does, not by a Ctrl-C.
    fn command(&self, host: Host, program: &str) -> Result<Command> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.namespace(host)?, program]).process_group(0);
        command.stdin(Stdio::null());
        Ok(command)
    }

    /// Brings a host's tunnel up: what that says.
    pub(super) fn up(&mut self, host: Host) -> Result<String> {
        let program = std::env::current_exe().context("this program")?;
        let mut command = self.command(host, &program.display().to_string())?;
        command.args(["tunnel", "up", &self.file(&format!("{}.toml", host.name))]);
        let mut child = command.stdout(Stdio::piped()).spawn().context("ip netns exec")?;
        let out = child.stdout.take();
        self.tunnels.push(child);
        let mut said = String::new();
        for line in out.map(BufReader::new).into_iter().flat_map(BufRead::lines) {
            let line = line.context("tamis tunnel up")?;
            if line.starts_with("next: ") {
                return Ok(said);
            }
            said += &format!("{line}\n");
        }
        bail!("the tunnel of {} did not come up", host.name)
    }

    /// Pings a host from another one through the tunnel: what that says at its end.
    pub(super) fn ping(&self, from: Host, to: Host) -> Result<String> {
        let mut command = self.command(from, "ping")?;
        let output =
            command.args(["-c", "5", "-i", "0.2", "-W", "2", &to.inner.to_string()]).output();
        let output = output.context("ping")?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let told: Vec<&str> = said.lines().rev().filter(|line| !line.is_empty()).take(2).collect();
        match output.status.success() {
            true => Ok(told.into_iter().rev().map(|line| format!("{line}\n")).collect()),
            false => bail!("ping from {} to {}: {}", from.name, to.name, told.join(", ")),
        }
    }

    /// Connects from a host, by TCP.
    pub(super) fn knock(&self, from: Host, to: SocketAddr) -> Result<Knocked> {
        let namespace = PathBuf::from("/run/netns").join(self.namespace(from)?);
        let namespace = File::open(&namespace).with_context(|| namespace.display().to_string())?;
        // A thread of its own: what namespace it is in is its own, too.
        let connected = thread::spawn(move || {
            let kind = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(namespace.as_fd(), kind).map_err(std::io::Error::from)?;
            TcpStream::connect_timeout(&to, PATIENCE)
        });
        match connected.join().map_err(|_| anyhow!("a thread panicked"))? {
            Ok(_) => Ok(Knocked::Answered),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(Knocked::Answered),
            Err(error) if error.kind() == ErrorKind::TimedOut => Ok(Knocked::Silence),
            Err(error) => Err(error).context("connect"),
        }
    }

    /// What a command of this program prints, whatever it finds.
    pub(super) fn tamis(&self, args: &[&str]) -> Result<String> {
        let program = std::env::current_exe().context("this program")?;
        let mut command = Command::new(program);
        let output = command.args(args).process_group(0).stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("tamis {}", args.join(" ")))?;
        match output.status.code() {
            Some(0 | 1) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            _ => bail!(
                "tamis {}: {}",
                args.join(" "),
                String::from_utf8_lossy(&output.stderr).trim()
            ),
        }
    }
}

/// Waits for a process that was asked to end, and ends it where it does not.
fn wait(child: &mut Child) {
    let end = Instant::now() + TO_END;
    while Instant::now() < end && matches!(child.try_wait(), Ok(None)) {
        thread::sleep(Duration::from_millis(20));
    }
    // One that has ended is not there to be ended.
    let _ = child.kill();
    let _ = child.wait();
}

impl Drop for World {
    fn drop(&mut self) {
        for child in &mut self.tunnels {
            if let (Ok(None), Ok(process)) = (child.try_wait(), i32::try_from(child.id())) {
                let _ = ask_to_end(process);
            }
        }
        self.tunnels.iter_mut().for_each(wait);
        for name in &self.names {
            if let Err(error) = ip(&["netns", "delete", name]) {
                screen::tell(&format!("warning: {error:#}"));
            }
        }
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            screen::tell(&format!("warning: {}: {error}", self.folder.display()));
        }
    }
}
