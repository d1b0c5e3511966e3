//! The control socket: one request in JSON on a line, one answer on a line, over a Unix socket.
//!
//! Contract: whoever may open the socket may ask anything; it is made for its owner alone. Clients are served one
//! after the other, each for [`PATIENCE`] at most and a line of [`LONGEST`] bytes, beside the worker: none of them
//! can hold up a frame.

use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Run, RunError, socket_error, status};

/// How long a client may take for its request.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(10);

/// Bytes of a request.
const LONGEST: u64 = 64 * 1024;

/// What a client may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// What has become of all frames.
    Status,
    /// The counters of rules.
    Counters {
        /// As the save tool prints them with the rules, not by themselves.
        save: bool,
    },
    /// That it stops.
    Stop,
}

impl Request {
    fn json(self) -> Value {
        match self {
            Self::Status => json!({ "command": "status" }),
            Self::Counters { save } => json!({ "command": "counters", "save": save }),
            Self::Stop => json!({ "command": "stop" }),
        }
    }

    fn from_json(request: &Value) -> Result<Self, String> {
        match request["command"].as_str() {
            Some("status") => Ok(Self::Status),
            Some("counters") => Ok(Self::Counters { save: request["save"] == true }),
            Some("stop") => Ok(Self::Stop),
            _ => Err("expected a command: status, counters or stop".to_owned()),
        }
    }
}

/// A socket that is listened at. It is removed with this.
#[derive(Debug)]
pub(super) struct Control {
    listener: UnixListener,
    socket: PathBuf,
}

impl Control {
    /// Listens at a path. A socket that nobody listens at any more is replaced.
    pub(super) fn open(socket: &Path) -> Result<Self, RunError> {
        Self::listen(socket).map_err(|source| socket_error(socket, source))
    }

    fn listen(socket: &Path) -> io::Result<Self> {
        let is_left = match UnixStream::connect(socket) {
            Ok(_) => {
                return Err(io::Error::new(ErrorKind::AddrInUse, "another tamis listens there"));
            }
            Err(error) => error.kind() == ErrorKind::ConnectionRefused,
        };
        if is_left {
            fs::remove_file(socket)?;
        }
        let listener = UnixListener::bind(socket)?;
        let control = Self { listener, socket: socket.to_owned() };
        fs::set_permissions(socket, fs::Permissions::from_mode(0o600))?;
        control.listener.set_nonblocking(true)?;
        Ok(control)
    }

    /// Serves a client, if one waits; whether one did.
    pub(super) fn serve(&mut self, run: &Run) -> bool {
        let Ok((client, _)) = self.listener.accept() else { return false };
        // One that goes away without its answer needs none.
        let _ = answer(&client, run);
        true
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // Nothing is left to do where somebody removed it before.
        let _ = fs::remove_file(&self.socket);
    }
}

fn answer(mut client: &UnixStream, run: &Run) -> io::Result<()> {
    client.set_nonblocking(false)?;
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(client.take(LONGEST)).read_line(&mut line)?;
    let request = serde_json::from_str(&line).map_err(|error| format!("no JSON: {error}"));
    let answer = match request.and_then(|request| Request::from_json(&request)) {
        Ok(request) => carry_out(request, run),
        Err(what) => json!({ "error": what }),
    };
    writeln!(client, "{answer}")
}

fn carry_out(request: Request, run: &Run) -> Value {
    let snapshot = match request {
        Request::Status => return run.status().json(),
        Request::Stop => {
            run.stop();
            return json!({ "schema": "tamis.stop/1", "stopping": true });
        }
        Request::Counters { .. } => run.published().snapshot(),
    };
    match (snapshot, request) {
        (Err(error), _) => json!({ "error": error.to_string() }),
        (Ok(snapshot), Request::Counters { save: true }) => {
            json!({ "schema": "tamis.counters/1", "text": status::saved(&snapshot) })
        }
        (Ok(snapshot), _) => {
            json!({ "schema": "tamis.counters/1", "rules": status::hit(&snapshot) })
        }
    }
}

/// Asks whoever listens at a socket: the answer, or what is wrong with the request.
///
/// # Errors
/// Nobody listens there, or answers.
pub fn ask(socket: &Path, request: Request) -> io::Result<Result<Value, String>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER))?;
    writeln!(stream, "{}", request.json())?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    let answer: Value = serde_json::from_str(&line).map_err(io::Error::other)?;
    Ok(match answer["error"].as_str() {
        Some(error) => Err(error.to_owned()),
        None => Ok(answer),
    })
}
