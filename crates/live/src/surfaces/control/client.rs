//! The client's end of the socket: [`ask`], and [`follow`] where more than one line answers.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

#[cfg(target_os = "linux")]
use rustix::{net::sockopt::socket_peercred, process::geteuid};
use serde_json::Value;

#[cfg(target_os = "linux")]
use super::folder;
use crate::answers::Refusal;
use crate::api::request::Request;

/// How long an answer may take: reading the longest text of rules that there may be takes its time.
const ANSWER: Duration = Duration::from_secs(120);

/// Bytes of an answer, at most. Rules that take more in JSON cannot be read by `get`.
const LONGEST: usize = 128 << 20;

/// Bytes of an answer that holds all connections, too.
const LONGEST_SNAPSHOT: usize = 1 << 30;

/// Bytes of a line of a stream: the longest frame, in hexadecimal.
const LONGEST_LINE: usize = 1 << 20;

/// Sends a request to the listener at a socket: returns the answer, or why there is none.
///
/// # Errors
/// No run listens there, or it does not answer.
pub fn ask(socket: &Path, request: &Request) -> io::Result<Result<Value, Refusal>> {
    let mut stream = connected(socket)?;
    let sent = writeln!(stream, "{}", serde_json::to_string(request)?);
    let most = if matches!(request, Request::Snapshot {}) { LONGEST_SNAPSHOT } else { LONGEST };
    // A client that is refused before all is sent has an answer to read all the same.
    let line = line(&mut BufReader::new(&stream), most)?;
    if line.is_empty() {
        sent?;
        return Err(ErrorKind::UnexpectedEof.into());
    }
    answer(&line)
}

/// Asks for a stream: passes every line after the first, which says that it begins, to `each`, until `each` or the run
/// ends it.
///
/// # Errors
/// No run listens there, or it does not answer; or `each` fails.
pub fn follow(
    socket: &Path,
    request: &Request,
    mut each: impl FnMut(Value) -> io::Result<ControlFlow<()>>,
) -> io::Result<Result<(), Refusal>> {
    let mut stream = connected(socket)?;
    writeln!(stream, "{}", serde_json::to_string(request)?)?;
    let mut lines = BufReader::new(&stream);
    if let Err(refusal) = answer(&line(&mut lines, LONGEST_LINE)?)? {
        return Ok(Err(refusal));
    }
    stream.set_read_timeout(None)?;
    loop {
        let line = line(&mut lines, LONGEST_LINE)?;
        // A run that ends in the middle of a line ends the stream there.
        if !line.ends_with('\n') {
            return Ok(Ok(()));
        }
        let document = serde_json::from_str(&line).map_err(io::Error::other)?;
        if each(document)?.is_break() {
            return Ok(Ok(()));
        }
    }
}

/// Connects to a socket whose listener is root, or the user of this process. Root may ask a run of another user's,
/// where nobody else can have put the socket there.
fn connected(socket: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER))?;
    #[cfg(target_os = "linux")]
    {
        let (own, user) = (geteuid(), socket_peercred(&stream)?.uid);
        if own.is_root() {
            folder::check(socket, user.as_raw())?;
        } else if !user.is_root() && user != own {
            let (own, user) = (own.as_raw(), user.as_raw());
            let what = format!("expected root or user {own} to listen there, found user {user}");
            return Err(io::Error::new(ErrorKind::PermissionDenied, what));
        }
    }
    Ok(stream)
}

/// A line with its end; without one where the stream ends before.
fn line(lines: &mut impl BufRead, most: usize) -> io::Result<String> {
    let mut line = String::new();
    lines.take(most as u64).read_line(&mut line)?;
    if line.len() == most && !line.ends_with('\n') {
        let what = format!("expected an answer of at most {most} bytes, found a longer one");
        return Err(io::Error::new(ErrorKind::FileTooLarge, what));
    }
    Ok(line)
}

/// The answer on a line.
fn answer(line: &str) -> io::Result<Result<Value, Refusal>> {
    let answer: Value = serde_json::from_str(line).map_err(io::Error::other)?;
    Ok(match Refusal::of(&answer) {
        Some(refusal) => Err(refusal),
        None => Ok(answer),
    })
}
