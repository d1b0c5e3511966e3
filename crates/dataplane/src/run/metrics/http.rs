//! As much of HTTP/1.1 as one page takes: a request is read up to the end of its head, one answer is given, and the
//! connection is closed.
//!
//! Contract: a client has [`PATIENCE`] for all of it, [`LONGEST`] bytes for the head of its request. Nothing of the
//! request but its first line is looked at.
//!
//! Source: RFC 9112.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// How long a client may take from its first byte to the last one of its answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of a request's head.
pub(super) const LONGEST: usize = 8 * 1024;

/// Type of what is answered.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// What a client asks for: the one page that there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    /// With the counters of rules.
    pub(super) rules: bool,
}

/// How a request ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Ok,
    BadRequest,
    NotFound,
    NotAllowed,
    TooLong,
    Unavailable,
}

/// Reads a request and answers it with what `page` makes of it.
///
/// # Errors
/// The client went away, or took too long.
pub(super) fn serve(
    client: &TcpStream,
    page: impl FnOnce(Asked) -> (Status, String),
) -> io::Result<()> {
    client.set_nonblocking(false)?;
    let until = Instant::now() + PATIENCE;
    let head = head(client, until)?;
    let (status, text) = match head.as_deref().map_or(Err(Status::TooLong), asked) {
        Ok(asked) => page(asked),
        Err(status) => (status, "expected GET /metrics\n".to_owned()),
    };
    send(client, &answer(status, &text), until)?;
    client.shutdown(Shutdown::Write)
}

/// Tells a client that so many others are served, without waiting.
pub(super) fn refuse(client: &TcpStream, others: usize) {
    let text = format!("{others} clients are served: expected one of them to end\n");
    let _ = client.set_nonblocking(true);
    let _ = (&*client).write(answer(Status::Unavailable, &text).as_bytes());
}

/// The head of a request, up to the empty line; `None` if it has none within its room.
fn head(mut client: &TcpStream, until: Instant) -> io::Result<Option<Vec<u8>>> {
    let (mut head, mut some) = (Vec::new(), [0; 1024]);
    while head.len() <= LONGEST {
        client.set_read_timeout(Some(left(until)?))?;
        let read = client.read(&mut some)?;
        if read == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(&some[..read]);
        if head.windows(4).any(|bytes| bytes == b"\r\n\r\n") || head.ends_with(b"\n\n") {
            return Ok(Some(head));
        }
    }
    Ok(None)
}

/// What the first line of a request asks for.
fn asked(head: &[u8]) -> Result<Asked, Status> {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = std::str::from_utf8(line).map_err(|_| Status::BadRequest)?;
    let words: Vec<&str> = line.trim_end_matches('\r').split(' ').collect();
    let &[method, target, version] = &*words else { return Err(Status::BadRequest) };
    if !version.starts_with("HTTP/1.") {
        return Err(Status::BadRequest);
    }
    if method != "GET" {
        return Err(Status::NotAllowed);
    }
    match target.split_once('?').unwrap_or((target, "")) {
        ("/metrics", "") => Ok(Asked { rules: false }),
        ("/metrics", "rules=1") => Ok(Asked { rules: true }),
        _ => Err(Status::NotFound),
    }
}

/// An answer with its head.
fn answer(status: Status, text: &str) -> String {
    let (line, kind) = match status {
        Status::Ok => ("200 OK", OPEN_METRICS),
        Status::BadRequest => ("400 Bad Request", PLAIN),
        Status::NotFound => ("404 Not Found", PLAIN),
        Status::NotAllowed => ("405 Method Not Allowed\r\nAllow: GET", PLAIN),
        Status::TooLong => ("431 Request Header Fields Too Large", PLAIN),
        Status::Unavailable => ("503 Service Unavailable", PLAIN),
    };
    let length = text.len();
    format!(
        "HTTP/1.1 {line}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{text}"
    )
}

/// Sends all of it; a client that takes it bit by bit has no longer than any other.
fn send(mut client: &TcpStream, text: &str, until: Instant) -> io::Result<()> {
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        client.set_write_timeout(Some(left(until)?))?;
        match client.write(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(sent) => rest = &rest[sent..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What is left of a client's time.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}
