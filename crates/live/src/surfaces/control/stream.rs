//! `watch`: a line for each frame, until either side ends it.
//!
//! Contract: a client that does not read holds up this thread alone, for [`PATIENCE`]: it does not get what it does not
//! read in time, and is sent the number of lost frames.

use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};

use crate::answers::{Frame, Refusal, WatchEnd, Watching, json};
use crate::api::parts::Parts;
use crate::api::request::Watch;
use crate::api::watchers::frame;
use crate::forward::taps::Next;

/// How long a client may take for a line.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is checked whether a client is still there.
const LOOK: Duration = Duration::from_millis(100);

/// Sends frames to a client.
pub(super) fn watch(mut client: &UnixStream, parts: &Parts, asked: &Watch) -> io::Result<()> {
    let listening = match parts.watchers.listen(&asked.filter) {
        Ok(listening) => listening,
        Err(error) => {
            return writeln!(client, "{}", Refusal::request(error).json());
        }
    };
    client.set_write_timeout(Some(PATIENCE))?;
    writeln!(client, "{}", json(&Watching { watching: true }))?;
    let mut left = asked.count.unwrap_or(u64::MAX);
    let end = loop {
        if left == 0 {
            break "count";
        }
        match listening.next(LOOK) {
            Next::Frame(told) => {
                let frame = frame(&told, asked.frames, &parts.devices);
                let line = Frame { lost: Some(listening.lost()), ..frame };
                writeln!(client, "{}", json(&line))?;
                left -= 1;
            }
            Next::Nothing if is_gone(client)? => return Ok(()),
            Next::Nothing => {}
            Next::Ended => break "run",
        }
    };
    let end = WatchEnd { end: end.to_owned(), lost: listening.lost() };
    writeln!(client, "{}", json(&end))
}

/// Whether a client has closed its end.
fn is_gone(client: &UnixStream) -> io::Result<bool> {
    match recv(client.as_raw_fd(), &mut [0; 64], MsgFlags::MSG_DONTWAIT) {
        Ok(read) => Ok(read == 0),
        Err(Errno::EAGAIN | Errno::EINTR) => Ok(false),
        Err(error) => Err(io::Error::new(ErrorKind::BrokenPipe, error)),
    }
}
