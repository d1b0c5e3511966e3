//! [`Started`]: a run that goes on until it is stopped. A test that fails meanwhile leaves none behind.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};

use crate::ran::{Ran, TAMIS};

/// A run that is ready. What it says is read at its end.
pub(crate) struct Started {
    child: Child,
    err: BufReader<ChildStderr>,
}

/// Starts a run with this configuration, and waits until it is ready.
pub(crate) fn started(config: &str) -> Started {
    let mut command = Command::new(TAMIS);
    command.args(["run", config]);
    Started::new(command).unwrap_or_else(|said| panic!("it ended before it was ready: {said}"))
}

impl Started {
    /// Starts it and waits until it is ready; what it said where it never is.
    pub(crate) fn new(mut command: Command) -> Result<Self, String> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let err = BufReader::new(child.stderr.take().unwrap());
        let mut started = Self { child, err };
        started.says("ready\n").map(|_| started)
    }

    /// Reads what it says up to the line that has this: that line. All that it said where it never says so.
    pub(crate) fn says(&mut self, text: &str) -> Result<String, String> {
        let mut said = String::new();
        loop {
            let line = said.len();
            if self.err.read_line(&mut said).unwrap() == 0 {
                return Err(said);
            }
            if said[line..].contains(text) {
                return Ok(said.split_off(line));
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(self) {
        drop(self);
    }

    /// What it said since it was ready, once it has ended by itself.
    pub(crate) fn ended(mut self) -> Ran {
        let mut ran = Ran { code: None, out: String::new(), err: String::new() };
        self.child.stdout.take().unwrap().read_to_string(&mut ran.out).unwrap();
        self.err.read_to_string(&mut ran.err).unwrap();
        ran.code = self.child.wait().unwrap().code();
        ran
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
