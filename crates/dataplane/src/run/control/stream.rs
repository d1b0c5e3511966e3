//! `watch`: a line for each frame, until one of both sides ends it.
//!
//! Contract: a client that does not read holds up this thread alone, for [`PATIENCE`]: what it does not read in time it does
//! not get, and is told how much that was.

use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use serde_json::json;

use super::super::live::Live;
use super::super::taps::Next;
use super::request::{Refusal, RefusalKind, Watch};

/// How long a client may take for a line.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is looked whether a client is still there.
const LOOK: Duration = Duration::from_millis(100);

/// Tells a client of frames.
pub(super) fn watch(mut client: &UnixStream, live: &Live, asked: &Watch) -> io::Result<()> {
    let listening = match live.taps.listen(&asked.filter) {
        Ok(listening) => listening,
        Err(error) => {
            let refusal = Refusal { kind: RefusalKind::Request, what: error.to_string() };
            return writeln!(client, "{}", refusal.json());
        }
    };
    client.set_write_timeout(Some(PATIENCE))?;
    writeln!(client, "{}", json!({ "schema": "tamis.watch/1", "watching": true }))?;
    let mut left = asked.count.unwrap_or(u64::MAX);
    let end = loop {
        if left == 0 {
            break "count";
        }
        match listening.next(LOOK) {
            Next::Frame(told) => {
                let mut document = live.told(&told, asked.frames);
                document["lost"] = listening.lost().into();
                writeln!(client, "{document}")?;
                left -= 1;
            }
            Next::Nothing if is_gone(client)? => return Ok(()),
            Next::Nothing => {}
            Next::Ended => break "run",
        }
    };
    let lost = listening.lost();
    writeln!(client, "{}", json!({ "schema": "tamis.watch/1", "end": end, "lost": lost }))
}

/// Whether a client has closed its end.
fn is_gone(client: &UnixStream) -> io::Result<bool> {
    match recv(client.as_raw_fd(), &mut [0; 64], MsgFlags::MSG_DONTWAIT) {
        Ok(read) => Ok(read == 0),
        Err(Errno::EAGAIN | Errno::EINTR) => Ok(false),
        Err(error) => Err(io::Error::new(ErrorKind::BrokenPipe, error)),
    }
}
