//! The study's forms of packet handling ([`crate::studies::overlay`]), each in a process of its own: this program, by a
//! command that it does not show.

use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::Stdio;

use tunnel::PublicKey;

use super::{Daemon, End, INNER, MTU, Namespace, Overlay};
use crate::studies::overlay::{Peer, Settings};

/// The command of `tamis-bench` that is one end by a form of the study's.
pub const COMMAND: &str = "tunnel-end";
/// What an end says once its device is there.
pub(in crate::bench::tunnel) const READY: &str = "ready";

/// One of them.
pub(in crate::bench::tunnel) struct StudyForm {
    pub(in crate::bench::tunnel) name: &'static str,
    /// This program.
    pub(in crate::bench::tunnel) program: PathBuf,
}

impl Overlay for StudyForm {
    fn name(&self) -> &'static str {
        self.name
    }

    fn start(&self, end: &End, place: &Namespace) -> io::Result<Daemon> {
        let mut command = place.program(&self.program);
        command.args([COMMAND, self.name]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = place.spawn(command)?;
        let (input, said) = (child.stdin.take(), child.stdout.take());
        let daemon = Daemon::new(child, None, None);
        let settings = serde_json::to_vec(&settings(end))?;
        input.ok_or(io::ErrorKind::BrokenPipe)?.write_all(&settings)?;
        let mut lines = said.into_iter().flat_map(|said| BufReader::new(said).lines());
        if !lines.any(|line| line.is_ok_and(|line| line == READY)) {
            return Err(io::Error::other("it ends before it is ready"));
        }
        let (device, address) = (&end.device, end.address);
        let length = INNER.rsplit('/').next().unwrap_or_default();
        place.ip(&format!(
            "addr add {address}/{length} dev {device}\nlink set {device} mtu {MTU} up\n"
        ))?;
        Ok(daemon)
    }

    fn forget(&self, _: &Daemon, _: &PublicKey) -> io::Result<()> {
        Err(io::Error::other("it keeps its peers"))
    }
}

fn settings(end: &End) -> Settings {
    let peer = |peer: &super::Peer| Peer {
        key: *peer.key.as_bytes(),
        endpoint: peer.endpoint,
        address: peer.address,
        keepalive: peer.keepalive,
    };
    Settings {
        device: end.device.clone(),
        key: *end.key.as_bytes(),
        listen: end.listen,
        mtu: MTU,
        peers: end.peers.iter().map(peer).collect(),
    }
}
