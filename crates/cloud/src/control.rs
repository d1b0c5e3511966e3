//! The control socket of a cloud: a line of JSON in, a line of JSON out. Only the cloud's own user may open it.

use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::net::sockopt::socket_peercred;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Bytes of the longest request.
const LONGEST: u64 = 1 << 20;
/// How long a client may take over its request.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long a cloud may take over its answer.
const ANSWER: Duration = Duration::from_secs(10);

/// What is asked of a cloud.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Request {
    /// Make one-time keys for nodes of these names.
    Enrol {
        /// The names.
        names: Vec<String>,
    },
    /// List the nodes.
    Devices {},
    /// List the paths of the relay, and what it has forwarded by each.
    Paths {},
    /// Revoke a node.
    Revoke {
        /// The node's name.
        name: String,
    },
    /// All that the page shows.
    Overview {},
    /// The lines of the log.
    Log {},
    /// Print the policy in force, or put another one in force.
    Policy(NewPolicy),
}

/// A policy that is to be in force; without a text, the question for the policy in force.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewPolicy {
    /// The text, in TOML.
    #[serde(default)]
    pub(crate) text: Option<String>,
    /// What errors call the text.
    #[serde(default)]
    pub(crate) name: String,
    /// The version that has to be in force.
    #[serde(default)]
    pub(crate) version: Option<u64>,
    /// The user who asks, whom the system names.
    #[serde(skip)]
    pub(crate) uid: u32,
}

/// Asks the cloud that serves a socket.
pub(crate) fn ask(socket: &Path, request: &Request) -> Result<Value> {
    let shown = || format!("{}: is tamis-cloud running?", socket.display());
    let mut stream = UnixStream::connect(socket).with_context(shown)?;
    stream.set_read_timeout(Some(ANSWER)).with_context(shown)?;
    let line = serde_json::to_string(request)? + "\n";
    stream.write_all(line.as_bytes()).with_context(shown)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).with_context(shown)?;
    serde_json::from_str(&answer).with_context(shown)
}

/// Opens the socket, in place of a socket that a killed cloud left; a file that is none stays.
pub(crate) fn listen(socket: &Path) -> io::Result<UnixListener> {
    let listener = match UnixListener::bind(socket) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            let is_left = fs::symlink_metadata(socket)?.file_type().is_socket();
            if !is_left || UnixStream::connect(socket).is_ok() {
                return Err(error);
            }
            fs::remove_file(socket)?;
            UnixListener::bind(socket)?
        }
        bound => bound?,
    };
    fs::set_permissions(socket, Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Reads the request of a client.
pub(crate) fn request(stream: &UnixStream) -> io::Result<Request> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST)).read_line(&mut line)?;
    let mut request = serde_json::from_str(&line).map_err(io::Error::other)?;
    if let Request::Policy(new) = &mut request {
        new.uid = socket_peercred(stream)?.uid.as_raw();
    }
    Ok(request)
}

/// Sends the answer to a client, which may no longer be there.
pub(crate) fn answer(mut stream: &UnixStream, answer: &Value) {
    let _ = stream.write_all(format!("{answer}\n").as_bytes());
}
