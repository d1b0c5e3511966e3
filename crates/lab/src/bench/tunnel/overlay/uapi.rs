//! Implementations of WireGuard that are a process for each device, told what to do by a socket.
//!
//! Source: <https://www.wireguard.com/xplatform/>: lines `key=value`, an empty one at the end; the answer's last is
//! `errno=0`. The socket is `/var/run/wireguard/DEVICE.sock`, whatever the namespace.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tunnel::PublicKey;

use super::{Daemon, End, INNER, MTU, Namespace, Overlay, quiet, wait_for};
use crate::hex::hex;

/// What is looked for, and by which options it stays in the foreground with an interface of a name that follows.
pub(in crate::bench::tunnel) const PEERS: [(&str, &[&str]); 3] = [
    ("wireguard-go", &["-f"]),
    ("boringtun-cli", &["--foreground", "--disable-drop-privileges", "--threads", "2"]),
    ("gotatun", &["--foreground", "--disable-drop-privileges"]),
];

const SOCKETS: &str = "/var/run/wireguard";
/// For an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// One of [`PEERS`].
pub(in crate::bench::tunnel) struct WireGuard {
    pub(in crate::bench::tunnel) name: &'static str,
    pub(in crate::bench::tunnel) program: PathBuf,
    pub(in crate::bench::tunnel) options: &'static [&'static str],
}

impl Overlay for WireGuard {
    fn name(&self) -> &'static str {
        self.name
    }

    fn start(&self, end: &End, place: &Namespace) -> io::Result<Daemon> {
        let End { device, address, .. } = end;
        let mut command = quiet(place.program(&self.program));
        command.args(self.options).arg(device);
        let socket = Path::new(SOCKETS).join(format!("{device}.sock"));
        let mut daemon = Daemon::new(place.spawn(command)?, Some(socket.clone()), None);
        wait_for(&mut daemon, "socket", || Ok(UnixStream::connect(&socket).is_ok()))?;
        ask(&socket, &configuration(end))?;
        let length = INNER.rsplit('/').next().unwrap_or_default();
        place.ip(&format!(
            "addr add {address}/{length} dev {device}\nlink set {device} mtu {MTU} up\n"
        ))?;
        Ok(daemon)
    }

    fn forget(&self, daemon: &Daemon, peer: &PublicKey) -> io::Result<()> {
        ask(
            daemon.socket()?,
            &format!("set=1\npublic_key={}\nremove=true\n\n", hex(peer.as_bytes())),
        )
    }
}

/// All that an end is told.
fn configuration(end: &End) -> String {
    let mut lines = format!("set=1\nprivate_key={}\n", hex(end.key.as_bytes()));
    if end.listen != 0 {
        lines += &format!("listen_port={}\n", end.listen);
    }
    for peer in &end.peers {
        lines += &format!("public_key={}\n", hex(peer.key.as_bytes()));
        if let Some(endpoint) = peer.endpoint {
            lines += &format!("endpoint={endpoint}\n");
        }
        lines += &format!("persistent_keepalive_interval={}\n", peer.keepalive);
        lines += &format!("allowed_ip={}/32\n", peer.address);
    }
    lines + "\n"
}

/// One request.
fn ask(socket: &Path, request: &str) -> io::Result<()> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request.as_bytes())?;
    for line in BufReader::new(stream).lines() {
        match line?.strip_prefix("errno=") {
            Some("0") => return Ok(()),
            Some(error) => return Err(io::Error::other(format!("refused with errno {error}"))),
            None => (),
        }
    }
    Err(io::Error::other("no answer"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tunnel::overlay::Peer;
    use tunnel::{PrivateKey, PublicKey};

    #[test]
    fn an_end_is_told_its_keys_and_its_peers() {
        let peer = |endpoint: Option<&str>| Peer {
            key: PublicKey::new([0xab; 32]),
            endpoint: endpoint.and_then(|endpoint| endpoint.parse().ok()),
            address: [10, 77, 0, 2].into(),
            keepalive: 25,
        };
        let end = End {
            device: "tb1".to_owned(),
            key: PrivateKey::new([1; 32]),
            address: [10, 77, 0, 1].into(),
            listen: 0,
            way: String::new(),
            peers: vec![peer(None), peer(Some("192.0.2.1:51820"))],
        };
        let (one, other) = ("01".repeat(32), "ab".repeat(32));
        let rest = "persistent_keepalive_interval=25\nallowed_ip=10.77.0.2/32\n";
        let expected = format!(
            "set=1\nprivate_key={one}\npublic_key={other}\n{rest}public_key={other}\n\
            endpoint=192.0.2.1:51820\n{rest}\n"
        );
        assert_eq!(configuration(&end), expected);
        let end = End { listen: 7, peers: Vec::new(), ..end };
        assert_eq!(configuration(&end), format!("set=1\nprivate_key={one}\nlisten_port=7\n\n"));
    }

    /// A daemon that answers so.
    fn answered(answer: &'static str) -> io::Result<()> {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("x.sock");
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let (stream, _) = listener.accept().unwrap();
                let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
                assert!(lines.any(|line| line.is_empty()));
                (&stream).write_all(answer.as_bytes()).unwrap();
            });
            ask(&socket, "set=1\n\n")
        })
    }

    #[test]
    fn a_request_that_is_refused_is_an_error() {
        assert!(answered("errno=0\n\n").is_ok());
        assert!(answered("errno=-22\n\n").unwrap_err().to_string().contains("-22"));
        assert!(answered("").unwrap_err().to_string().contains("no answer"));
    }
}
