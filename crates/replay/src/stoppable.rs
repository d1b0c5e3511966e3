//! Reading that can be stopped while it waits: standard input and pipes may be silent for hours.
//!
//! Contract: a thread reads and hands chunks over; once the flag is raised, the reader is at its end. The
//! thread is left to whatever it waits for, and ends with the process or the source.

use std::fs::{self, File};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use pktio::{CaptureReader, PortError};

/// How often the flag is looked at.
const PATIENCE: Duration = Duration::from_millis(50);
/// Bytes read at a time, and chunks that may wait to be taken.
const CHUNK: usize = 256 * 1024;
const CHUNKS: usize = 4;

/// Opens a capture; the flag stops the reading of a capture that may keep its reader waiting.
pub(crate) fn open(name: &str, stop: Option<&Arc<AtomicBool>>) -> Result<CaptureReader, PortError> {
    match stop {
        Some(stop) if may_wait(name) => {
            let shown = if name == "-" { "<stdin>" } else { name };
            CaptureReader::new(shown, Stoppable::new(name, Arc::clone(stop)))
        }
        _ => CaptureReader::open(name),
    }
}

/// Whether a capture may keep its reader waiting: then it cannot be read a second time, either.
pub(crate) fn may_wait(name: &str) -> bool {
    name == "-" || fs::metadata(name).is_ok_and(|file| !file.is_file())
}

type Chunk = io::Result<Vec<u8>>;

struct Stoppable {
    chunks: Receiver<Chunk>,
    chunk: Vec<u8>,
    taken: usize,
    stop: Arc<AtomicBool>,
}

impl Stoppable {
    fn new(name: &str, stop: Arc<AtomicBool>) -> Self {
        let (sender, chunks) = sync_channel(CHUNKS);
        let name = name.to_owned();
        std::thread::spawn(move || match name.as_str() {
            "-" => pump(io::stdin().lock(), &sender),
            // Opening a pipe waits for its writer.
            _ => match File::open(&name) {
                Ok(file) => pump(file, &sender),
                Err(error) => drop(sender.send(Err(error))),
            },
        });
        Self { chunks, chunk: Vec::new(), taken: 0, stop }
    }

    /// The next chunk; empty at the end.
    fn next_chunk(&self) -> Chunk {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(Vec::new());
            }
            match self.chunks.recv_timeout(PATIENCE) {
                Ok(chunk) => return chunk,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(Vec::new()),
            }
        }
    }
}

impl Read for Stoppable {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.chunk.len() {
            self.chunk = self.next_chunk()?;
            self.taken = 0;
        }
        let length = buffer.len().min(self.chunk.len() - self.taken);
        buffer[..length].copy_from_slice(&self.chunk[self.taken..self.taken + length]);
        self.taken += length;
        Ok(length)
    }
}

/// Sends all that `from` yields, until nobody takes it.
fn pump(mut from: impl Read, to: &SyncSender<Chunk>) {
    loop {
        let mut chunk = vec![0; CHUNK];
        let read = match from.read(&mut chunk) {
            Ok(0) => return,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read,
        };
        let chunk = read.map(|length| {
            chunk.truncate(length);
            chunk
        });
        let last = chunk.is_err();
        if to.send(chunk).is_err() || last {
            return;
        }
    }
}
