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
    /// Nobody answered.
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

/// The bridge of a namespace that is a network.
const BRIDGE: &str = "shared";

/// The hosts and files of a demo, which are removed with this.
pub(super) struct World {
    folder: PathBuf,
    /// Hosts and networks, each a namespace.
    names: Vec<&'static str>,
    running: Vec<Child>,
}

impl World {
    /// A world without hosts.
    ///
    /// # Errors
    /// The folder could not be made.
    pub(super) fn new() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("tamis-demo-{}", std::process::id()));
        let shown = || folder.display().to_string();
        DirBuilder::new().mode(0o700).create(&folder).with_context(shown)?;
        Ok(Self { folder, names: Vec::new(), running: Vec::new() })
    }

    /// Makes a host.
    pub(super) fn add(&mut self, host: &'static str) -> Result<()> {
        ip(&["netns", "add", &namespace(host)])?;
        self.names.push(host);
        self.set(host, "link set lo up")
    }

    /// Makes a network that hosts can be connected to.
    pub(super) fn add_network(&mut self, name: &'static str) -> Result<()> {
        self.add(name)?;
        self.set(name, &format!("link add {BRIDGE} type bridge"))?;
        self.set(name, &format!("link set {BRIDGE} up"))
    }

    /// Connects a host to a network by a device of this name and address, such as `192.0.2.1/24`.
    pub(super) fn connect(
        &self,
        host: &str,
        (device, address): (&str, &str),
        network: &str,
    ) -> Result<()> {
        let (inside, peer) = (namespace(network), format!("{host}-{device}"));
        self.set(host, &format!("link add {device} type veth peer name {peer} netns {inside}"))?;
        self.set(network, &format!("link set {peer} master {BRIDGE} up"))?;
        self.set(host, &format!("address add {address} dev {device}"))?;
        self.set(host, &format!("link set {device} up"))
    }

    /// Runs ip(8) in a host's namespace.
    pub(super) fn set(&self, host: &str, line: &str) -> Result<()> {
        let name = namespace(host);
        let args: Vec<&str> = ["-n", &name].into_iter().chain(line.split(' ')).collect();
        ip(&args).map(drop)
    }

    /// A file of it.
    pub(super) fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// A program in a host's namespace, in a process group of its own: it ends when this does, not by a Ctrl-C.
    pub(super) fn command(&self, host: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &namespace(host), program]).process_group(0);
        command.stdin(Stdio::null());
        command
    }

    /// Starts a program that ends with this, and waits until it has printed a line that begins so; returns the lines
    /// before.
    pub(super) fn start(&mut self, mut command: Command, last: &str) -> Result<String> {
        let shown = format!("{command:?}");
        let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| shown.clone())?;
        let out = child.stdout.take();
        self.running.push(child);
        let mut said = String::new();
        for line in out.map(BufReader::new).into_iter().flat_map(BufRead::lines) {
            let line = line.with_context(|| shown.clone())?;
            if line.starts_with(last) {
                return Ok(said);
            }
            said += &format!("{line}\n");
        }
        bail!("{shown}: it did not come up")
    }

    /// Brings the tunnel of a host up: what that says.
    pub(super) fn up(&mut self, host: &str) -> Result<String> {
        let mut command = self.command(host, &own_path()?);
        command.args(["tunnel", "up", &self.file(&format!("{host}.toml"))]);
        self.start(command, "next: ")
    }

    /// Pings a host by ping(8): what that says at its end.
    pub(super) fn ping(&self, mut ping: Command, to: &str) -> Result<String> {
        let output = ping.args(["-c", "5", "-i", "0.2", "-W", "2", to]).output().context("ping")?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let told: Vec<&str> = said.lines().rev().filter(|line| !line.is_empty()).take(2).collect();
        match output.status.success() {
            true => Ok(told.into_iter().rev().map(|line| format!("{line}\n")).collect()),
            false => {
                let error = String::from_utf8_lossy(&output.stderr).into_owned();
                bail!("ping to {to}: {}{}", told.join(", "), error.trim())
            }
        }
    }

    /// Connects from a host, by TCP.
    pub(super) fn knock(&self, from: &str, to: SocketAddr) -> Result<Knocked> {
        let namespace = PathBuf::from("/run/netns").join(namespace(from));
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
}

/// The path of this program.
pub(super) fn own_path() -> Result<String> {
    Ok(std::env::current_exe().context("this program")?.display().to_string())
}

/// What a command of this program prints, whatever it finds.
pub(super) fn tamis(mut program: Command, args: &[&str]) -> Result<String> {
    program.args(args).process_group(0).stdin(Stdio::null());
    printed(program, 1)
}

/// What a program prints that has to succeed.
pub(super) fn says(command: Command) -> Result<String> {
    printed(command, 0)
}

/// What a program prints whose exit code is at most this.
fn printed(mut command: Command, most: i32) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    match output.status.code() {
        Some(code) if code <= most => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        _ => bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()),
    }
}

/// The name of a host's namespace.
fn namespace(host: &str) -> String {
    format!("tamis-demo-{}-{host}", std::process::id())
}

/// Waits for a process that was asked to end, and ends it where it does not.
fn wait(child: &mut Child) {
    let end = Instant::now() + TO_END;
    while Instant::now() < end && matches!(child.try_wait(), Ok(None)) {
        thread::sleep(Duration::from_millis(20));
    }
    // A process that has ended cannot be killed.
    let _ = child.kill();
    let _ = child.wait();
}

impl Drop for World {
    fn drop(&mut self) {
        for child in &mut self.running {
            if let (Ok(None), Ok(process)) = (child.try_wait(), i32::try_from(child.id())) {
                let _ = ask_to_end(process);
            }
        }
        self.running.iter_mut().for_each(wait);
        for name in &self.names {
            if let Err(error) = ip(&["netns", "delete", &namespace(name)]) {
                screen::tell(&format!("warning: {error:#}"));
            }
        }
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            screen::tell(&format!("warning: {}: {error}", self.folder.display()));
        }
    }
}
