//! Frames of 64 bytes between two `net_null` devices: what a frame costs where the devices cost next to nothing. Beside
//! testpmd, which looks at no frame (`io`) or writes to each of them (`macswap`).
//!
//! Contract: figures are frames for each second that the one forwarding thread was on a processor (`schedstat`), so other
//! work on the machine costs no more than cache. Nobody pins anything, and no huge pages are needed. The EAL wants root,
//! and leaves no files of these runs behind.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::counts::spent_in;
use super::plan::Plan;
use crate::bench::document::Row;
use crate::bench::limit;
use crate::bench::rows::Rows;

const TESTPMD: &str = "dpdk-testpmd";
/// Its ways to forward, with the names that rows have for them.
const MODES: [(&str, &str); 2] = [("macswap", "testpmd macswap"), ("io", "testpmd io")];
/// What both are told of the EAL and its devices.
const EAL: [&str; 8] = [
    "--no-huge",
    "-m",
    "256",
    "--no-pci",
    "--no-shconf",
    "--no-telemetry",
    "--vdev=net_null0",
    "--vdev=net_null1",
];
/// Frames that both receive, and send, at once.
const BURST: usize = 64;
/// How long the first frames are left out: memory is touched for the first time then.
const WARM_UP: Duration = Duration::from_secs(1);
/// Where the EAL of root has a folder for each prefix.
const FOLDERS: &str = "/var/run/dpdk";

/// Measures tamis, and testpmd in turn with it.
pub(super) fn rows(tamis: &Path, plan: Plan, out: &mut Rows) -> io::Result<()> {
    let has_peer = plan.peers && Command::new(TESTPMD).arg("--help").output().is_ok();
    if plan.peers && !has_peer {
        let why = format!("{TESTPMD} is not installed");
        out.lacks("testpmd", why);
    }
    let modes = if has_peer { &MODES[..] } else { &[] };
    let (mut ours, mut theirs) = (Vec::new(), vec![Vec::new(); modes.len()]);
    for _ in limit::rounds(plan.runs()) {
        ours.push(Forwarding::tamis(tamis)?.rate(plan.seconds())?);
        for ((mode, _), figures) in modes.iter().zip(&mut theirs) {
            figures.push(Forwarding::testpmd(mode)?.rate(plan.seconds())?);
        }
    }
    let row = || {
        Row::new("live.forward.null", "tamis", "packets/s of processor time", &ours)
            .with("rules", 0)
            .with("size", 64)
            .with("workers", 1)
    };
    if modes.is_empty() {
        out.push(row());
    }
    for ((_, name), figures) in modes.iter().zip(&theirs) {
        out.push(row().beside(name, &ours, figures));
    }
    Ok(())
}

/// A process that forwards, until this is dropped.
pub(super) struct Forwarding {
    child: Child,
    /// Of the EAL.
    prefix: String,
    counter: Counter,
}

/// Who counts its frames.
enum Counter {
    /// `tamis ctl`, by the socket in this folder; and the thread that counts.
    Tamis(PathBuf, TempDir, &'static str),
    /// What it prints each second, with what its thread had spent then.
    Testpmd(Receiver<Sample>),
}

/// Frames received so far, and nanoseconds spent on them.
type Sample = (u64, u64);

impl Forwarding {
    fn tamis(tamis: &Path) -> io::Result<Self> {
        let mut run = Command::new(tamis);
        run.arg("run");
        Self::by(run, tamis, "worker 0")
    }

    /// A program that is given the configuration as its last argument, says when it is ready as `tamis run` does, and
    /// forwards in a thread of this name.
    pub(super) fn by(mut run: Command, tamis: &Path, thread: &'static str) -> io::Result<Self> {
        let folder = TempDir::new()?;
        let prefix = prefix();
        fs::write(folder.path().join("rules.v4"), "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n")?;
        let config = folder.path().join("live.toml");
        fs::write(&config, configuration(&prefix))?;
        let mut child = run.arg(&config).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let said = child.stderr.take().map(BufReader::new);
        let counter = Counter::Tamis(tamis.to_owned(), folder, thread);
        let forwarding = Self { child, prefix, counter };
        let mut lines = said.into_iter().flat_map(BufRead::lines).map_while(Result::ok);
        match lines.any(|line| line == "ready") {
            true => Ok(forwarding),
            false => Err(io::Error::other("a program ended before it was ready")),
        }
    }

    fn testpmd(mode: &str) -> io::Result<Self> {
        let prefix = prefix();
        let mut child = Command::new(TESTPMD)
            .args(["-l", "0,1", "--file-prefix", &prefix])
            .args(EAL)
            .args(["--", "--nb-cores=1", "--total-num-mbufs=16384", "--stats-period=1"])
            .args([format!("--burst={BURST}"), format!("--forward-mode={mode}")])
            // Closed, it ends testpmd.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let said = child.stdout.take().map(BufReader::new);
        let process = child.id();
        let (to, samples) = mpsc::channel();
        // It ends with the process.
        thread::spawn(move || {
            let mut lines = said.into_iter().flat_map(BufRead::lines).map_while(Result::ok);
            while let Some(frames) = printed(&mut lines) {
                let spent = spent(process, "rte-worker-1");
                if spent.is_ok_and(|spent| to.send((frames, spent)).is_err()) {
                    break;
                }
            }
        });
        Ok(Self { child, prefix, counter: Counter::Testpmd(samples) })
    }

    /// Frames for each second of processor time, over at least so many seconds.
    pub(super) fn rate(mut self, seconds: f64) -> io::Result<f64> {
        thread::sleep(WARM_UP);
        let before = self.sample()?;
        thread::sleep(Duration::from_secs_f64(seconds));
        let after = self.sample()?;
        let frames = after.0.saturating_sub(before.0) as f64;
        let nanoseconds = after.1.saturating_sub(before.1) as f64;
        Ok(frames / nanoseconds * 1e9)
    }

    fn sample(&mut self) -> io::Result<Sample> {
        match &self.counter {
            Counter::Tamis(tamis, folder, thread) => {
                let frames = received(tamis, &folder.path().join("socket"))?;
                Ok((frames, spent(self.child.id(), thread)?))
            }
            Counter::Testpmd(samples) => {
                // Those of seconds that are over say nothing of now.
                samples.try_iter().for_each(drop);
                samples.recv().map_err(|_| io::Error::other(format!("{TESTPMD} ended")))
            }
        }
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        // It has nothing to lose, and its folder may never have been made.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(Path::new(FOLDERS).join(&self.prefix));
    }
}

/// Of the files of one run of this process at a time.
fn prefix() -> String {
    format!("tamis-bench-{}", std::process::id())
}

fn configuration(prefix: &str) -> String {
    let port = |name: &str, device: &str| {
        format!("[[port]]\nname = \"{name}\"\nkind = \"dpdk\"\ndevice = \"{device}\"\n")
    };
    let eal: Vec<String> = EAL.iter().map(|argument| format!("\"{argument}\"")).collect();
    format!(
        "{}{}[[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"rules.v4\"\n\
        [workers]\ncount = 1\n[burst]\nrx = {BURST}\ntx = {BURST}\n\
        [control]\nsocket = \"socket\"\n[dpdk]\neal = [{}, \"--file-prefix={prefix}\"]\n",
        port("left", "net_null0"),
        port("right", "net_null1"),
        eal.join(", "),
    )
}

/// Frames of both directions that a run has received.
fn received(tamis: &Path, socket: &Path) -> io::Result<u64> {
    let mut asked = Command::new(tamis);
    let answer = asked.args(["ctl", "--json", "--socket"]).arg(socket).arg("status").output()?;
    let status: Value = serde_json::from_slice(&answer.stdout)?;
    let wires = status["wires"].as_array().map_or(&[][..], Vec::as_slice);
    Ok(wires.iter().filter_map(|wire| wire["received"].as_u64()).sum())
}

/// Frames of both devices, as they are printed next.
fn printed(lines: &mut impl Iterator<Item = String>) -> Option<u64> {
    let mut counts = lines.filter_map(|line| {
        line.trim().strip_prefix("RX-packets:")?.split_whitespace().next()?.parse::<u64>().ok()
    });
    Some(counts.next()? + counts.next()?)
}

/// Nanoseconds that a thread of a process was on a processor, by what the kernel calls it.
fn spent(process: u32, name: &str) -> io::Result<u64> {
    for task in fs::read_dir(format!("/proc/{process}/task"))? {
        let task = task?.path();
        if fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == name) {
            return spent_in(&task.join("schedstat"));
        }
    }
    Err(io::Error::other(format!("no thread is called {name}")))
}
