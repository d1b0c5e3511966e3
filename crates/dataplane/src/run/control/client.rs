//! The other end of the socket: [`ask`], and [`follow`] where more than one line answers.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::request::{Refusal, Request};

/// How long an answer may take: reading the longest text of rules that there may be takes its time.
const ANSWER: Duration = Duration::from_secs(120);

/// Asks whoever listens at a socket: the answer, or why there is none.
///
/// # Errors
/// Nobody listens there, or answers.
pub fn ask(socket: &Path, request: &Request) -> io::Result<Result<Value, Refusal>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER))?;
    let sent = writeln!(stream, "{}", serde_json::to_string(request)?);
    let mut line = String::new();
    // Who is refused before all is sent has an answer to read all the same.
    BufReader::new(&stream).read_line(&mut line)?;
    if line.is_empty() {
        sent?;
        return Err(ErrorKind::UnexpectedEof.into());
    }
    answer(&line)
}

/// Asks for a stream: every line after the first, which says that it begins, is given to `each`, until that or the run
/// has enough.
///
/// # Errors
/// Nobody listens there, or answers; or `each` fails.
pub fn follow(
    socket: &Path,
    request: &Request,
    mut each: impl FnMut(Value) -> io::Result<ControlFlow<()>>,
) -> io::Result<Result<(), Refusal>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER))?;
    writeln!(stream, "{}", serde_json::to_string(request)?)?;
    let (mut lines, mut line) = (BufReader::new(&stream), String::new());
    lines.read_line(&mut line)?;
    if let Err(refusal) = answer(&line)? {
        return Ok(Err(refusal));
    }
    stream.set_read_timeout(None)?;
    loop {
        line.clear();
        lines.read_line(&mut line)?;
        // A run that ends in the middle of a line has said no more than that.
        if !line.ends_with('\n') {
            return Ok(Ok(()));
        }
        let document = serde_json::from_str(&line).map_err(io::Error::other)?;
        if each(document)?.is_break() {
            return Ok(Ok(()));
        }
    }
}

/// What a line says.
fn answer(line: &str) -> io::Result<Result<Value, Refusal>> {
    let answer: Value = serde_json::from_str(line).map_err(io::Error::other)?;
    Ok(match Refusal::of(&answer) {
        Some(refusal) => Err(refusal),
        None => Ok(answer),
    })
}
