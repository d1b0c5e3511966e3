//! Ours: `tamis tunnel up`, with what its configuration has by default.
//!
//! Source: `docs/tunnel.md`. `up` is a process that made the host ready, and one of its own that moves packets: both are
//! counted.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use tunnel::PublicKey;

use super::{Daemon, End, INNER, MTU, Namespace, Overlay};
use crate::bench::tunnel::rounds::OURS;

/// The program.
pub(in crate::bench::tunnel) struct Tamis {
    pub(in crate::bench::tunnel) program: PathBuf,
    /// Workers of each end; as many as it has by default where none are given.
    pub(in crate::bench::tunnel) workers: Option<usize>,
}

impl Overlay for Tamis {
    fn name(&self) -> &'static str {
        OURS
    }

    fn workers(&self) -> Option<usize> {
        self.workers
    }

    fn start(&self, end: &End, place: &Namespace) -> io::Result<Daemon> {
        let folder = TempDir::new()?;
        let config = configure(end, self.workers, folder.path())?;
        let said = folder.path().join("said");
        let mut command = place.program(&self.program);
        command.args(["tunnel", "up"]).arg(&config);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(fs::File::create(&said)?);
        let mut child = place.spawn(command)?;
        let mut output = child.stdout.take().map(BufReader::new);
        let mut daemon = Daemon::new(child, None, Some(folder));
        let up = format!("{} is up", end.device);
        let mut lines = output.iter_mut().flat_map(BufRead::lines).map_while(Result::ok);
        if !lines.any(|line| line.starts_with(&up)) {
            let said = fs::read_to_string(&said).unwrap_or_default();
            let last = said.lines().last().unwrap_or("it says nothing").to_owned();
            return Err(io::Error::other(format!("not up: {last}")));
        }
        daemon.output = output;
        Ok(daemon)
    }

    fn forget(&self, daemon: &Daemon, peer: &PublicKey) -> io::Result<()> {
        let config = daemon.folder.as_ref().map(|folder| folder.path().join(CONFIG));
        let config = config.ok_or_else(|| io::Error::other("no configuration"))?;
        let mut command = Command::new(&self.program);
        command.args(["tunnel", "remove-peer"]).arg(config).arg(peer.to_string());
        let output = command.output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        let refused = || io::Error::other(format!("tunnel remove-peer: {}", said.trim()));
        output.status.success().then_some(()).ok_or_else(refused)
    }
}

const CONFIG: &str = "end.toml";

/// Writes the configuration of an end, and its key.
fn configure(end: &End, workers: Option<usize>, folder: &Path) -> io::Result<PathBuf> {
    let mut key = OpenOptions::new();
    let mut key = key.write(true).create_new(true).mode(0o600).open(folder.join("end.key"))?;
    writeln!(key, "{}", *end.key.text())?;
    let config = folder.join(CONFIG);
    fs::write(&config, configuration(end, workers, folder))?;
    Ok(config)
}

fn configuration(end: &End, workers: Option<usize>, folder: &Path) -> String {
    let length = INNER.rsplit('/').next().unwrap_or_default();
    let control = folder.join("control.sock");
    let mut text = format!(
        "[tunnel]\nname = \"{}\"\nkey = \"end.key\"\naddress = [\"{}/{length}\"]\n\
        listen = {}\nmtu = {MTU}\ncontrol = \"{}\"\n",
        end.device,
        end.address,
        end.listen,
        control.display()
    );
    if let Some(workers) = workers {
        text += &format!("workers = {workers}\n");
    }
    for (number, peer) in end.peers.iter().enumerate() {
        text += &format!("[[peer]]\nname = \"peer{number}\"\nkey = \"{}\"\n", peer.key);
        if let Some(endpoint) = peer.endpoint {
            text += &format!("endpoint = \"{endpoint}\"\n");
        }
        text += &format!("allowed = [\"{}/32\"]\n", peer.address);
        if peer.keepalive > 0 {
            text += &format!("keepalive = {}\n", peer.keepalive);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tunnel::overlay::Peer;
    use live::config::tunnel::TunnelSettings;
    use tunnel::PrivateKey;

    #[test]
    fn what_an_end_is_told_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let peer = |number: u8, endpoint: Option<&str>, keepalive| Peer {
            key: PrivateKey::new([number; 32]).public(),
            endpoint: endpoint.and_then(|endpoint| endpoint.parse().ok()),
            address: [10, 77, 0, number].into(),
            keepalive,
        };
        let end = End {
            device: "tb1".to_owned(),
            key: PrivateKey::new([1; 32]),
            address: [10, 77, 0, 1].into(),
            listen: 7,
            way: String::new(),
            peers: vec![peer(2, None, 0), peer(3, Some("192.0.2.1:51900"), 25)],
        };
        let config = configure(&end, Some(3), folder.path()).unwrap();
        let read = TunnelSettings::read(&config).unwrap();
        assert_eq!((&*read.name, read.listen, read.mtu), ("tb1", 7, MTU));
        assert_eq!(read.key.as_bytes(), end.key.as_bytes());
        assert_eq!(read.addresses, [(end.address.into(), 16)]);
        assert_eq!((read.workers, read.peers.len()), (3, 2));
        for (read, told) in read.peers.iter().zip(&end.peers) {
            assert_eq!((read.key, read.endpoint.is_some()), (told.key, told.endpoint.is_some()));
            assert_eq!(read.keepalive.unwrap_or_default(), told.keepalive);
            assert_eq!(read.allowed[0].address(), told.address);
        }
    }
}
