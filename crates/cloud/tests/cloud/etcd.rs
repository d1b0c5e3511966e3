//! The distribution's etcd, as a process with a folder of its own.

use std::fs::File;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long its start may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server of etcd.
pub(crate) struct Server {
    folder: tempfile::TempDir,
    running: Option<Child>,
    /// What it is run by: words before its own.
    before: Vec<String>,
    /// Where it is asked, and by other servers, of which there are none.
    at: [String; 2],
}

impl Server {
    /// A server on loopback; nothing where there is no etcd, and it says so.
    pub(crate) fn here() -> Option<Self> {
        let free = || TcpListener::bind("127.0.0.1:0").unwrap();
        let at = [free(), free()].map(|it| it.local_addr().unwrap().to_string());
        Self::new(Vec::new(), at)
    }

    /// A server at these addresses, run by these words before its own.
    pub(crate) fn new(before: Vec<String>, at: [String; 2]) -> Option<Self> {
        if Command::new("etcd").arg("--version").output().is_err() {
            let _ = writeln!(std::io::stderr(), "SKIPPED: etcd is not there (etcd-server)");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut server = Self { folder, running: None, before, at };
        server.start();
        Some(server)
    }

    /// Where it is asked.
    pub(crate) fn at(&self) -> &str {
        &self.at[0]
    }

    /// Starts it with what it kept.
    pub(crate) fn start(&mut self) {
        let [clients, peers] = self.at.each_ref().map(|at| format!("http://{at}"));
        let log = File::create(self.folder.path().join("log")).unwrap();
        let data = self.folder.path().join("data").display().to_string();
        let words = [
            ["--data-dir", &data],
            ["--listen-client-urls", &clients],
            ["--advertise-client-urls", &clients],
            ["--listen-peer-urls", &peers],
            ["--initial-advertise-peer-urls", &peers],
            ["--initial-cluster", &format!("default={peers}")],
        ];
        let mut all = self.before.iter().cloned().chain(["etcd".to_owned()]);
        let mut command = Command::new(all.next().unwrap());
        command.args(all).args(words.concat()).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.running = Some(command.spawn().unwrap());
    }

    /// Waits until it is asked on this host.
    pub(crate) fn wait(&self) {
        let start = Instant::now();
        while TcpStream::connect(self.at()).is_err() {
            let log = std::fs::read_to_string(self.folder.path().join("log"));
            assert!(start.elapsed() < PATIENCE, "etcd did not start: {log:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.running.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
