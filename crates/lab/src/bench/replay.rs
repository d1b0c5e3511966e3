//! `tamis-bench replay`: packets per second of `tamis replay`, and of tcpdump filtering by the same rules.
//!
//! Contract: each run is a process of its own, from its start to its end, in turn with the peer's; the
//! capture is written to a temporary file before, which puts it into the page cache, and removed after.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Map, json};
use tempfile::TempDir;

use super::document::{Peer, Row, Runs};
use super::rows::Rows;
use super::shape::Shape;
use crate::bench::limit;

const PEER: &str = "tcpdump";

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Measure the peer too.
    pub peers: bool,
    /// Fewer packets and runs: some seconds.
    pub quick: bool,
}

/// Connections of the full table: as many as `--ct-max` allows.
const FLOWS: u32 = 262_144;

impl Plan {
    /// Shapes, packets of each, and workers that evaluate them.
    fn work(self) -> Vec<(Shape, u32, &'static [usize])> {
        let (packets, met, flood) = match self.quick {
            true => (300_000, 1_000_000, [100_000, 1_000_000]),
            false => (3_000_000, 4_000_000, [1_000_000, 10_000_000]),
        };
        vec![
            (Shape::Mean20, packets, &[1, 2]),
            (Shape::All100, packets, &[1, 2]),
            (Shape::FullTable { flows: 1000 }, met, &[1]),
            (Shape::FullTable { flows: FLOWS }, met, &[1]),
            (Shape::SynFlood, flood[0], &[1]),
            (Shape::SynFlood, flood[1], &[1]),
        ]
    }

    fn runs(self) -> usize {
        if self.quick { 3 } else { 5 }
    }
}

/// Measures this program, `tamis`.
///
/// # Errors
/// The capture cannot be written, or a run fails.
pub fn run(tamis: &Path, plan: Plan, out: &mut Rows) -> io::Result<()> {
    let peer = plan.peers && is_there(out);
    let scratch = TempDir::new()?;
    for (shape, packets, threads) in plan.work() {
        if !out.begins(format!("replay.rate of {}, {packets} packets", shape.name())) {
            continue;
        }
        let bench = Bench::new(tamis, shape, packets, scratch.path())?;
        for (index, threads) in threads.iter().enumerate() {
            // The peer has one thread, and so has the first of our runs.
            let expression = bench.expression.as_deref().filter(|_| peer && index == 0);
            out.push(bench.row(*threads, plan.runs(), expression)?);
        }
    }
    Ok(())
}

/// Whether the peer can be run; if not, it is listed.
fn is_there(out: &mut Rows) -> bool {
    let mut asked = Command::new(PEER);
    asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    let why = match asked.status() {
        Ok(status) if status.success() => return true,
        Ok(status) => format!("it ends with {status}"),
        Err(error) if error.kind() == ErrorKind::NotFound => "not installed".to_owned(),
        Err(error) => error.to_string(),
    };
    out.lacks(PEER, why);
    false
}

/// One shape, written to files.
struct Bench<'p> {
    tamis: &'p Path,
    shape: Shape,
    packets: u32,
    rules: String,
    capture: String,
    expression: Option<String>,
}

impl<'p> Bench<'p> {
    fn new(tamis: &'p Path, shape: Shape, packets: u32, scratch: &Path) -> io::Result<Self> {
        let file = |name: &str| scratch.join(name).to_string_lossy().into_owned();
        let (rules, capture) = (file("rules.v4"), file("packets.pcap"));
        std::fs::write(&rules, shape.rules())?;
        shape.capture(packets, File::create(&capture)?)?;
        Ok(Self { tamis, shape, packets, rules, capture, expression: shape.expression() })
    }

    fn row(&self, threads: usize, runs: usize, expression: Option<&str>) -> io::Result<Row> {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in limit::rounds(runs) {
            ours.push(self.rate(&mut self.replay(threads))?);
            if let Some(expression) = expression {
                theirs.push(self.rate(&mut self.filter(expression))?);
            }
        }
        let (ours, theirs) = (Runs::of(ours), Runs::of(theirs));
        let mut params = Map::new();
        params.insert("shape".to_owned(), json!(self.shape.name()));
        params.insert("threads".to_owned(), json!(threads));
        params.insert("packets".to_owned(), json!(self.packets));
        if let Shape::FullTable { flows } = self.shape {
            params.insert("flows".to_owned(), json!(flows));
        }
        if let Some(expression) = expression {
            params.insert("expression".to_owned(), json!(expression));
        }
        let peer = expression.map(|_| Peer::of(PEER, ours, theirs));
        let (name, engine, unit) = ("replay.rate", "walk", "packets/s");
        Ok(Row { name: name.into(), engine, params, runs: ours, unit, peer })
    }

    fn replay(&self, threads: usize) -> Command {
        let mut command = Command::new(self.tamis);
        command.args(["replay", &self.rules, &self.capture, "-j", &threads.to_string()]);
        command
    }

    fn filter(&self, expression: &str) -> Command {
        let mut command = Command::new(PEER);
        command.args(["-r", &self.capture, "-w", "/dev/null", expression]);
        command
    }

    /// Packets per second of one run, from the start of the process to its end.
    fn rate(&self, command: &mut Command) -> io::Result<f64> {
        let started = Instant::now();
        let output =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output()?;
        let elapsed = started.elapsed().as_secs_f64();
        if output.status.success() {
            return Ok(f64::from(self.packets) / elapsed);
        }
        let program = command.get_program().to_string_lossy().into_owned();
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(io::Error::other(format!("{program} ends with {}: {message}", output.status)))
    }
}
