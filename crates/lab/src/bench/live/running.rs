//! [`Running`]: a forwarder at work, and how each is started.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::counts::{resident, spent_by};
use super::kinds::{Backend, Tool};
use super::source::{NEAR_MAC, PRIORITY, Shape, rules as rules_of};
use crate::oracle::netns::{feed, ip, write_setting};

/// Of a host that is not there: the kernel's own stack leaves such frames alone.
const NOBODY: [u8; 6] = [2, 0, 0, 0, 0, 0x99];
/// As it is installed.
pub(super) const TESTPMD: &str = "dpdk-testpmd";

/// One that is running; it ends with it.
#[derive(Debug)]
pub(super) struct Running {
    child: Option<Child>,
    /// Closed, it ends testpmd.
    input: Option<ChildStdin>,
    folder: Option<TempDir>,
    /// The kernel forwards, by rules that this restored.
    tool: Option<Tool>,
}

impl Running {
    /// Nobody forwards.
    pub(super) fn nobody() -> Self {
        Self { child: None, input: None, folder: None, tool: None }
    }

    /// Whether nobody forwards.
    pub(super) fn is_none(&self) -> bool {
        self.child.is_none() && self.tool.is_none()
    }

    /// Who frames are sent to.
    pub(super) fn destination(&self) -> [u8; 6] {
        if self.tool.is_some() { NEAR_MAC } else { NOBODY }
    }

    /// Where its configuration lies.
    pub(super) fn folder(&self) -> &Path {
        self.folder.as_ref().map_or(Path::new(""), TempDir::path)
    }

    /// Bytes of its process that lie in memory.
    pub(super) fn resident(&self) -> io::Result<u64> {
        self.child.as_ref().map_or(Ok(0), |child| resident(child.id()))
    }

    /// Lets its threads run on all cores up to this one, and like those of others: where threads beside its workers have work to do.
    pub(super) fn unpin(&self, last_core: usize) -> io::Result<()> {
        let Some(child) = &self.child else { return Ok(()) };
        let process = child.id().to_string();
        let all = format!("0-{last_core}");
        Command::new("chrt").args(["--all-tasks", "--other", "--pid", "0", &process]).output()?;
        Command::new("taskset")
            .args(["--all-tasks", "--cpu-list", "--pid", &all, &process])
            .output()?;
        Ok(())
    }

    /// Nanoseconds that its process was on a processor.
    pub(super) fn spent(&self) -> io::Result<u64> {
        self.child.as_ref().map_or(Ok(0), |child| spent_by(child.id()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.input.take());
        if let Some(child) = &mut self.child {
            // What it says when it ends is of no use; it has nothing to lose.
            let _ = child.kill();
            let _ = child.wait();
        }
        drop(self.folder.take());
        // testpmd leaves its XDP program behind when it is killed; without one these change nothing.
        let _ = ip("link set m0 xdp off\nlink set m1 xdp off\n");
        if let Some(tool) = self.tool {
            let _ = write_setting("ipv4/ip_forward", "0");
            let _ = restore(tool, &rules_of(0, Shape::Addresses));
        }
    }
}

/// Starts tamis with ports `left` and `right` of `m0` and `m1`; `more` is the rest of its configuration, whose rules are
/// `rules.v4`.
pub(super) fn start_tamis(
    tamis: &Path,
    by: Backend,
    more: &str,
    rules: &str,
    core: usize,
) -> io::Result<Running> {
    let folder = TempDir::new()?;
    fs::write(folder.path().join("rules.v4"), rules)?;
    let config = folder.path().join("live.toml");
    let kind = by.name();
    let port = |name: &str, device: &str| {
        format!("[[port]]\nname = \"{name}\"\nkind = \"{kind}\"\ndevice = \"{device}\"\n")
    };
    fs::write(&config, port("left", "m0") + &port("right", "m1") + more)?;
    let mut command = pinned(core, tamis);
    let mut child =
        command.arg("run").arg(&config).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let said = child.stderr.take().map(BufReader::new);
    let mut running = Running::nobody();
    (running.child, running.folder) = (Some(child), Some(folder));
    let mut last = String::new();
    for line in said.into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
        if line == "ready" {
            return Ok(running);
        }
        last = line;
    }
    Err(io::Error::other(format!("tamis run ended before it was ready: {last}")))
}

/// It polls, on its own core; its main thread reads commands on the first one.
pub(super) fn start_testpmd(by: Backend, mode: &str, core: usize) -> io::Result<Running> {
    let mut command = Command::new("chrt");
    let cores = format!("0,{core}");
    command.args(["--rr", PRIORITY, TESTPMD, "-l", &cores, "--no-huge", "-m", "512", "--no-pci"]);
    for (number, device) in ["m0", "m1"].into_iter().enumerate() {
        command.arg(format!("--vdev=net_{}{number},iface={device}", by.name()));
    }
    command.args(["--", "-i", "--nb-cores=1", "--auto-start", "--total-num-mbufs=16384"]);
    command.arg(format!("--forward-mode={mode}"));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let input = child.stdin.take();
    let mut running = Running::nobody();
    (running.child, running.input) = (Some(child), input);
    thread::sleep(Duration::from_millis(1500));
    match running.child.as_mut().map(Child::try_wait) {
        Some(Ok(Some(status))) => Err(io::Error::other(format!("{TESTPMD} ends with {status}"))),
        _ => Ok(running),
    }
}

/// Lets the kernel forward under these rules.
pub(super) fn start_kernel(tool: Tool, rules: &str) -> io::Result<Running> {
    let mut running = Running::nobody();
    running.tool = Some(tool);
    write_setting("ipv4/ip_forward", "1")?;
    // A device that testpmd took down has forgotten its neighbours.
    ip(
        "link set m0 up\nlink set m1 up\nneigh replace 10.0.1.2 lladdr 02:00:00:00:00:99 nud permanent dev m1\n",
    )?;
    restore(tool, rules)?;
    Ok(running)
}

fn pinned(core: usize, program: &Path) -> Command {
    let mut command = Command::new("chrt");
    command.args(["--rr", PRIORITY, "taskset", "-c", &core.to_string()]).arg(program);
    command
}

fn restore(tool: Tool, rules: &str) -> io::Result<()> {
    feed(&mut Command::new(tool.program()), rules)
}
