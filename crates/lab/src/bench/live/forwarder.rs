//! What forwards frames from `m0` to `m1`: tamis, testpmd, the kernel, or nobody.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::counts::{resident, spent_by};
use super::source::{NEAR_MAC, PRIORITY, Shape, rules as rules_of};
use crate::oracle::netns::write_setting;

/// Of a host that is not there: the kernel's own stack leaves such frames alone.
const NOBODY: [u8; 6] = [2, 0, 0, 0, 0, 0x99];
const TESTPMD: &str = "dpdk-testpmd";
const WIRE: &str = "[[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"rules.v4\"\n";
const RESTORE: &str = "iptables-legacy-restore";

/// Who forwards.
#[derive(Clone, Copy, Debug)]
pub(super) enum Forwarder<'p> {
    /// `tamis run` with so many rules that no frame matches.
    Tamis {
        /// The program.
        tamis: &'p Path,
        /// How many rules, and of what shape.
        rules: (usize, Shape),
    },
    /// DPDK's, which looks at no frame, over `net_af_packet`.
    Testpmd,
    /// The kernel's router with so many rules of iptables-legacy.
    Kernel {
        /// How many rules, and of what shape.
        rules: (usize, Shape),
    },
    /// Nobody: frames end where they would be forwarded.
    None,
}

impl Forwarder<'_> {
    /// As figures name it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Tamis { .. } => "tamis",
            Self::Testpmd => "testpmd",
            Self::Kernel { .. } => "iptables-legacy",
            Self::None => "none",
        }
    }

    /// Why it cannot run here, if so.
    pub(super) fn lacking(&self) -> Option<String> {
        let program = match self {
            Self::Testpmd => TESTPMD,
            Self::Kernel { .. } => RESTORE,
            Self::Tamis { .. } | Self::None => return None,
        };
        let asked = Command::new(program).arg("--help").output();
        asked.is_err().then(|| format!("{program} is not installed"))
    }

    /// Starts it on a core, before all others.
    pub(super) fn start(&self, core: usize) -> io::Result<Running> {
        match self {
            Self::Tamis { tamis, rules } => {
                start_with(tamis, WIRE, &rules_of(rules.0, rules.1), core)
            }
            Self::Testpmd => start_testpmd(core),
            Self::Kernel { rules } => {
                write_setting("ipv4/ip_forward", "1")?;
                restore(&rules_of(rules.0, rules.1))?;
                Ok(Running::new(NEAR_MAC))
            }
            Self::None => Ok(Running::new(NOBODY)),
        }
    }
}

/// One that is running; it ends with it.
#[derive(Debug)]
pub(super) struct Running {
    child: Option<Child>,
    /// Closed, it ends testpmd.
    input: Option<ChildStdin>,
    folder: Option<TempDir>,
    to: [u8; 6],
}

impl Running {
    /// Nothing runs yet, and frames are to this address.
    fn new(to: [u8; 6]) -> Self {
        Self { child: None, input: None, folder: None, to }
    }

    /// Whether nobody forwards.
    pub(super) fn is_none(&self) -> bool {
        self.child.is_none() && self.to == NOBODY
    }

    /// Who frames are sent to.
    pub(super) fn destination(&self) -> [u8; 6] {
        self.to
    }

    /// Where its configuration lies.
    pub(super) fn folder(&self) -> &Path {
        self.folder.as_ref().map_or(Path::new(""), TempDir::path)
    }

    /// Bytes of its process that lie in memory.
    pub(super) fn resident(&self) -> io::Result<u64> {
        self.child.as_ref().map_or(Ok(0), |child| resident(child.id()))
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
        if self.to == NEAR_MAC {
            let _ = write_setting("ipv4/ip_forward", "0");
            let _ = restore(&rules_of(0, Shape::Addresses));
        }
    }
}

/// Starts tamis with ports `left` and `right` of `m0` and `m1`; `more` is the rest of its configuration, whose rules are
/// `rules.v4`.
pub(super) fn start_with(
    tamis: &Path,
    more: &str,
    rules: &str,
    core: usize,
) -> io::Result<Running> {
    let folder = TempDir::new()?;
    fs::write(folder.path().join("rules.v4"), rules)?;
    let config = folder.path().join("live.toml");
    let port = |name: &str, device: &str| {
        format!("[[port]]\nname = \"{name}\"\nkind = \"af_packet\"\ndevice = \"{device}\"\n")
    };
    fs::write(&config, port("left", "m0") + &port("right", "m1") + more)?;
    let mut command = pinned(core, tamis);
    let mut child =
        command.arg("run").arg(&config).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let said = child.stderr.take().map(BufReader::new);
    let ready = said.into_iter().flat_map(BufRead::lines).map_while(Result::ok);
    if !ready.into_iter().any(|line| line == "ready") {
        return Err(io::Error::other("tamis run ended before it was ready"));
    }
    Ok(Running { child: Some(child), input: None, folder: Some(folder), to: NOBODY })
}

/// It polls, on its own core; its main thread reads commands on the first one.
fn start_testpmd(core: usize) -> io::Result<Running> {
    let mut command = Command::new("chrt");
    let cores = format!("0,{core}");
    command.args(["--rr", PRIORITY, TESTPMD, "-l", &cores, "--no-huge", "-m", "512", "--no-pci"]);
    command.args(["--vdev=net_af_packet0,iface=m0", "--vdev=net_af_packet1,iface=m1", "--"]);
    command.args(["-i", "--forward-mode=io", "--nb-cores=1", "--auto-start"]);
    command.args(["--total-num-mbufs=16384"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    thread::sleep(Duration::from_millis(1500));
    if let Some(status) = child.try_wait()? {
        return Err(io::Error::other(format!("{TESTPMD} ends with {status}")));
    }
    let input = child.stdin.take();
    Ok(Running { child: Some(child), input, folder: None, to: NOBODY })
}

fn pinned(core: usize, program: &Path) -> Command {
    let mut command = Command::new("chrt");
    command.args(["--rr", PRIORITY, "taskset", "-c", &core.to_string()]).arg(program);
    command
}

fn restore(rules: &str) -> io::Result<()> {
    crate::oracle::netns::feed(&mut Command::new(RESTORE), rules)
}
