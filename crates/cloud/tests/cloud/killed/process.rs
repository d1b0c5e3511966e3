//! The cloud's process, or the processes of two directories, on loopback.

use std::cell::Cell;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::etcd::Server;

const CLOUD: &str = env!("CARGO_BIN_EXE_tamis-cloud");
/// How long it may take until one serves.
const PATIENCE: Duration = Duration::from_secs(60);
/// Ports of the relay.
const PORTS: u16 = 8;

/// One cloud, or two directories that share etcd, which both serve at the same address once they are in charge.
pub(crate) struct Cloud {
    folders: Vec<tempfile::TempDir>,
    running: Vec<Option<Child>>,
    /// The number of the folder whose process serves.
    serving: usize,
    pub(crate) etcd: Option<Server>,
    /// When the last two requests that it answered since its start were sent.
    answered: Cell<[Option<Instant>; 2]>,
}

impl Cloud {
    /// A cloud in which all may reach each other, at ports that nobody has; two of them where they share etcd.
    pub(crate) fn new(etcd: Option<Server>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("cloud.toml");
        let port = free();
        let init = ["all", config.to_str().unwrap(), "--init", "--public"].map(str::to_owned);
        let made =
            Command::new(CLOUD).args(init).arg(format!("127.0.0.1:{port}")).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        let text = fs::read_to_string(&config).unwrap();
        let relay = format!("relay = \"{}-{}\"", port + 1, port + PORTS);
        let mut text = text.replace("relay = \"52000-52031\"", &relay);
        assert!(text.contains(&relay));
        text += "[[allow]]\nbetween = [\"*\", \"*\"]\n";
        let mut folders = vec![folder];
        if let Some(etcd) = &etcd {
            text += &format!("[etcd]\nendpoints = [\"http://{}\"]\n", etcd.at());
            let second = tempfile::tempdir().unwrap();
            fs::create_dir(second.path().join("cloud")).unwrap();
            for file in ["cloud/cloud.key", "cloud/signer.key"] {
                fs::copy(folders[0].path().join(file), second.path().join(file)).unwrap();
            }
            folders.push(second);
        }
        let write = |folder: &tempfile::TempDir| fs::write(folder.path().join("cloud.toml"), &text);
        folders.iter().for_each(|folder| write(folder).unwrap());
        let running = folders.iter().map(|_| None).collect();
        Self { folders, running, serving: 0, etcd, answered: Cell::default() }
    }

    /// Starts what does not run, and waits until one serves.
    pub(crate) fn start(&mut self) {
        let start = Instant::now();
        let serves = |folder: &tempfile::TempDir| {
            fs::read_to_string(folder.path().join("log")).is_ok_and(|log| log.contains("is served"))
        };
        self.start_missing();
        while !self.folders.iter().any(serves) {
            assert!(start.elapsed() < PATIENCE, "nobody serves");
            thread::sleep(Duration::from_millis(5));
            self.start_missing();
        }
        self.serving = self.folders.iter().position(serves).unwrap();
        self.answered.take();
    }

    /// Starts what does not run, or has ended by itself.
    fn start_missing(&mut self) {
        for (folder, running) in self.folders.iter().zip(&mut self.running) {
            let is_there = |child: &mut Child| child.try_wait().unwrap().is_none();
            if !running.as_mut().is_some_and(is_there) {
                let log = fs::File::create(folder.path().join("log")).unwrap();
                let mut command = Command::new(CLOUD);
                command.arg("all").arg(folder.path().join("cloud.toml"));
                *running = Some(command.stderr(Stdio::null()).stdout(log).spawn().unwrap());
            }
        }
    }

    /// Kills who serves after a while, whatever it does then.
    pub(crate) fn kill_after(&mut self, delay: Duration) -> JoinHandle<()> {
        let mut child = self.running[self.serving].take().unwrap();
        fs::write(self.folders[self.serving].path().join("log"), "").unwrap();
        thread::spawn(move || {
            thread::sleep(delay);
            child.kill().unwrap();
            child.wait().unwrap();
        })
    }

    /// Asks by the control socket; nothing if it is killed meanwhile.
    pub(crate) fn ask(&self, request: &Value) -> Option<Value> {
        let sent = Instant::now();
        let folder = self.folders[self.serving].path();
        let mut stream = UnixStream::connect(folder.join("cloud").join("control.sock")).ok()?;
        stream.write_all(format!("{request}\n").as_bytes()).ok()?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).ok()?;
        let answer: Value = serde_json::from_str(&line).ok()?;
        if answer["error"].as_str().is_some_and(|why| why.contains("etcd does not answer")) {
            return None;
        }
        let [_, last] = self.answered.get();
        self.answered.set([last, Some(sent)]);
        Some(answer)
    }

    /// Waits until who serves has written what waited for etcd. What it answered meanwhile it answered from memory.
    pub(crate) fn reaches_etcd(&self) {
        let start = Instant::now();
        let is_there = |log: &Value| !log.to_string().contains("what was before is not here");
        while !self.ask(&json!({ "command": "log" })).as_ref().is_some_and(is_there) {
            assert!(start.elapsed() < PATIENCE, "etcd is not reached");
            thread::sleep(Duration::from_millis(20));
        }
        self.answered.take();
    }

    /// A time after which the cloud has had a whole turn: what was due then is done, however slow the machine is.
    pub(crate) fn steady(&self) -> Option<Instant> {
        self.answered.get()[0]
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        for child in self.running.iter_mut().flatten() {
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
