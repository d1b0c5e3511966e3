//! As much of HTTP/1.1 as one page takes: a request is read up to the end of its head, one answer is given, and the
//! connection is closed.
//!
//! Contract: a client has [`PATIENCE`] for all of it, [`LONGEST`] bytes for the head of its request. Nothing of the
//! request but its first line and its Host field ([`host`]) is looked at.
//!
//! Source: RFC 9112.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use super::host;
use crate::surfaces::serving::{Guest, Served};

/// How long a client may take from its first byte to the last one of its answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of a request's head.
pub(super) const LONGEST: usize = 8 * 1024;

/// Content types of answers.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// The request of a client for the one page that there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    /// Whether the page has the counters of rules.
    pub(super) rules: bool,
}

/// The status of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Ok,
    BadRequest,
    NotFound,
    NotAllowed,
    TooLong,
    Misdirected,
    Unavailable,
}

/// Reads a request and answers it with what `page` makes of it.
///
/// # Errors
/// The client disconnected, or took too long.
pub(super) fn serve(
    served: &Served<TcpStream>,
    names: &[String],
    page: impl FnOnce(Asked) -> (Status, String),
) -> io::Result<()> {
    let client = &*served.stream;
    client.set_nonblocking(false)?;
    let until = Instant::now() + PATIENCE;
    let head = head(client, until)?;
    served.waits()?;
    let head = head.as_deref();
    let (status, text) = match head.map_or(Err(Status::TooLong), asked) {
        Ok(_) if head.is_some_and(|head| !host::is_ours(head, names)) => {
            (Status::Misdirected, host::EXPECTED.to_owned())
        }
        Ok(asked) => page(asked),
        Err(status) => (status, "expected GET /metrics\n".to_owned()),
    };
    served.reads()?;
    send(client, &answer(status, &text), until)?;
    client.shutdown(Shutdown::Write)
}

impl Guest for TcpStream {
    const MOST: usize = 16;

    fn send_away(&self) {
        let text = format!("{} clients are served: expected one of them to end\n", Self::MOST);
        let _ = self.set_nonblocking(true);
        let _ = (&*self).write(answer(Status::Unavailable, &text).as_bytes());
    }

    fn close(&self) {
        // A connection that is closed already needs nothing.
        let _ = self.shutdown(Shutdown::Both);
    }
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

/// Reads the request from its first line.
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

/// Formats an answer with its head.
fn answer(status: Status, text: &str) -> String {
    let (line, kind) = match status {
        Status::Ok => ("200 OK", OPEN_METRICS),
        Status::BadRequest => ("400 Bad Request", PLAIN),
        Status::NotFound => ("404 Not Found", PLAIN),
        Status::NotAllowed => ("405 Method Not Allowed\r\nAllow: GET", PLAIN),
        Status::TooLong => ("431 Request Header Fields Too Large", PLAIN),
        Status::Misdirected => ("421 Misdirected Request", PLAIN),
        Status::Unavailable => ("503 Service Unavailable", PLAIN),
    };
    let length = text.len();
    format!(
        "HTTP/1.1 {line}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{text}"
    )
}

/// Sends all of it; a client that reads slowly gets no more time than any other.
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

/// The time that a client has left.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}
