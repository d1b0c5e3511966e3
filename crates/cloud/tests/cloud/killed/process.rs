//! The cloud's process, on loopback.

use std::cell::Cell;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

const CLOUD: &str = env!("CARGO_BIN_EXE_tamis-cloud");
/// Ports of the relay.
const PORTS: u16 = 8;

pub(crate) struct Cloud {
    folder: tempfile::TempDir,
    running: Option<Child>,
    /// When the last two requests that it answered since its start were sent.
    answered: Cell<[Option<Instant>; 2]>,
}

impl Cloud {
    /// A cloud in which all may reach each other, at ports that nobody has.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cloud = Self { folder, running: None, answered: Cell::default() };
        let port = free();
        let init =
            ["all", cloud.config().to_str().unwrap(), "--init", "--public"].map(str::to_owned);
        let made =
            Command::new(CLOUD).args(init).arg(format!("127.0.0.1:{port}")).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        let text = fs::read_to_string(cloud.config()).unwrap();
        let relay = format!("relay = \"{}-{}\"", port + 1, port + PORTS);
        let text = text.replace("relay = \"52000-52031\"", &relay);
        assert!(text.contains(&relay));
        fs::write(cloud.config(), text).unwrap();
        let mut file = OpenOptions::new().append(true).open(cloud.config()).unwrap();
        writeln!(file, "[[allow]]\nbetween = [\"*\", \"*\"]").unwrap();
        cloud
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("cloud.toml")
    }

    /// Starts it, and waits until it serves.
    pub(crate) fn start(&mut self) {
        let mut command = Command::new(CLOUD);
        command.arg("all").arg(self.config()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("is served"), "{line}: {:?}", child.wait());
        self.running = Some(child);
        self.answered.take();
    }

    /// Kills it after a while, whatever it does then.
    pub(crate) fn kill_after(&mut self, delay: Duration) -> JoinHandle<()> {
        let mut child = self.running.take().unwrap();
        thread::spawn(move || {
            thread::sleep(delay);
            child.kill().unwrap();
            child.wait().unwrap();
        })
    }

    /// Asks by the control socket; nothing if it is killed meanwhile.
    pub(crate) fn ask(&self, request: &Value) -> Option<Value> {
        let sent = Instant::now();
        let mut stream =
            UnixStream::connect(self.folder.path().join("cloud").join("control.sock")).ok()?;
        stream.write_all(format!("{request}\n").as_bytes()).ok()?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).ok()?;
        let answer = serde_json::from_str(&line).ok()?;
        let [_, last] = self.answered.get();
        self.answered.set([last, Some(sent)]);
        Some(answer)
    }

    /// A time after which the cloud has had a whole turn: what was due then is done, however slow the machine is.
    pub(crate) fn steady(&self) -> Option<Instant> {
        self.answered.get()[0]
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        if let Some(mut child) = self.running.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The first of enough UDP ports in a row that nobody has.
fn free() -> u16 {
    (0..100)
        .find_map(|_| {
            let first = UdpSocket::bind("127.0.0.1:0").unwrap();
            let port = first.local_addr().unwrap().port();
            let others = (1..=PORTS)
                .map(|more| UdpSocket::bind(("127.0.0.1", port.checked_add(more)?)).ok());
            others.collect::<Option<Vec<UdpSocket>>>().map(|_| port)
        })
        .expect("free ports")
}
