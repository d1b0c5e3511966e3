//! The other end of the socket: [`ask`].

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::request::{Refusal, Request};

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(10);

/// Asks whoever listens at a socket: the answer, or why there is none.
///
/// # Errors
/// Nobody listens there, or answers.
pub fn ask(socket: &Path, request: &Request) -> io::Result<Result<Value, Refusal>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER))?;
    // Who is refused before it has said anything has an answer to read all the same.
    let written = writeln!(stream, "{}", serde_json::to_string(request)?);
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    if line.is_empty() {
        written?;
        return Err(ErrorKind::UnexpectedEof.into());
    }
    let answer: Value = serde_json::from_str(&line).map_err(io::Error::other)?;
    Ok(match Refusal::of(&answer) {
        Some(refusal) => Err(refusal),
        None => Ok(answer),
    })
}
