//! Reads the line of a client's request.
//!
//! Contract: whatever a client sends, and however slowly, it costs [`LONGEST`] bytes and its time at most. Bytes after
//! the line do not count; a client that ends its side ends its line.

use std::io::{self, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::answers::{Refusal, RefusalKind};
use crate::surfaces::serving::Served;

/// A client's connection.
pub(super) type Client = Served<UnixStream>;

/// Bytes of a request, at most.
pub(super) const LONGEST: usize = 48 << 20;

/// Bytes of a request from which on it may take longer: rules, for most of which a client has to be read again and
/// again.
const LONG: usize = 64 << 10;

/// The factor on that time.
const TIMES_FOR_LONG: u32 = 10;

/// Reads the client's line, without its end; or returns why there is none.
///
/// # Errors
/// The connection cannot be read any more.
pub(super) fn read(served: &mut Client, patience: Duration) -> io::Result<Result<String, Refusal>> {
    let client = Arc::clone(&served.stream);
    let (start, mut line) = (Instant::now(), Vec::new());
    let mut some = vec![0; 64 * 1024];
    loop {
        let patience = patience * if line.len() > LONG { TIMES_FOR_LONG } else { 1 };
        let left = patience.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Ok(Err(late(patience)));
        }
        client.set_read_timeout(Some(left))?;
        let read = match (&*client).read(&mut some) {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Err(late(patience))),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let end = some[..read].iter().position(|byte| *byte == b'\n');
        let more = &some[..end.unwrap_or(read)];
        if line.len() + more.len() > LONGEST {
            return Ok(Err(Refusal::request(format!(
                "expected a request of {LONGEST} bytes at most"
            ))));
        }
        if !served.takes(more.len()) {
            let what = "expected other requests to end: all together are too long".to_owned();
            return Ok(Err(Refusal { kind: RefusalKind::Busy, what }));
        }
        line.extend_from_slice(more);
        if end.is_some() || read == 0 {
            return Ok(String::from_utf8(line).map_err(|_| Refusal::request("expected UTF-8")));
        }
    }
}

fn late(patience: Duration) -> Refusal {
    Refusal::request(format!("expected a request within {} s, on a line", patience.as_secs()))
}
