//! [`Namespace`]: a network namespace that lives as long as a thread of its own, in which everything happens that is to
//! happen in that namespace: programs are started by it, sockets are opened by it and stay there.
//!
//! Contract: nothing has a name. The kernel takes the namespace apart, with all devices, once the thread and the programs
//! are gone, and the programs are sent SIGTERM when the thread ends, in whatever way: also if this process is killed.
//! Source: prctl(2) `PR_SET_PDEATHSIG`, which is about the thread that started a program; setpriv(1).

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use rustix::thread::gettid;

use crate::oracle::netns::{enter_bare, ip};

type Work = Box<dyn FnOnce() + Send>;

/// One of them.
pub(super) struct Namespace {
    work: Option<Sender<Work>>,
    thread: Option<JoinHandle<()>>,
    /// The thread, as ip(8) takes it for its namespace.
    task: i32,
    /// Where its programs write 0 to be in the host's control group, if it has one.
    group: Option<PathBuf>,
}

impl Namespace {
    /// A fresh one with `lo`.
    pub(super) fn new() -> io::Result<Self> {
        let (work, todo) = channel();
        let (tell, told) = channel();
        let thread = thread::spawn(move || {
            let entered = enter_bare().map(|()| gettid().as_raw_nonzero().get());
            let is_ready = entered.is_ok();
            if tell.send(entered).is_ok() && is_ready {
                carry_out(&todo);
            }
        });
        let task = told.recv().map_err(io::Error::other)??;
        Ok(Self { work: Some(work), thread: Some(thread), task, group: None })
    }

    /// What ip(8) takes after `netns`.
    pub(super) fn task(&self) -> i32 {
        self.task
    }

    /// Has something done in it.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let (tell, told) = channel();
        let gone = || io::Error::other("the thread of a namespace has ended");
        let work: Work = Box::new(move || drop(tell.send(work())));
        self.work.as_ref().ok_or_else(gone)?.send(work).map_err(|_| gone())?;
        told.recv().map_err(|_| gone())?
    }

    /// Runs lines of ip(8) commands.
    pub(super) fn ip(&self, lines: &str) -> io::Result<()> {
        let lines = lines.to_owned();
        self.run(move || ip(&lines))
    }

    /// Has all programs that [`Self::program`] makes from now on be in a control group.
    pub(super) fn join(&mut self, door: PathBuf) {
        self.group = Some(door);
    }

    /// A program of the host's own: one that [`program`] makes, in the control group of the host.
    pub(super) fn program(&self, name: impl AsRef<OsStr>) -> Command {
        let Some(door) = &self.group else { return program(name) };
        let mut command = program("sh");
        command.args(["-c", "echo 0 >\"$0\" && exec \"$@\""]).arg(door).arg(name);
        command
    }

    /// Starts a program, which ends with the namespace.
    pub(super) fn spawn(&self, mut command: Command) -> io::Result<Child> {
        self.run(move || command.spawn().map_err(|error| told(&command, &error)))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.work.take());
        if let Some(thread) = self.thread.take() {
            // What it panicked of has been told to whoever asked for it.
            let _ = thread.join();
        }
    }
}

/// Until nobody can ask for more.
fn carry_out(todo: &Receiver<Work>) {
    while let Ok(work) = todo.recv() {
        work();
    }
}

/// A program that ends when the thread does that starts it.
pub(super) fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM"]).arg(name);
    command
}

fn told(command: &Command, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{command:?}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    /// One, if there can be any.
    fn namespace() -> Option<Namespace> {
        match Namespace::new() {
            Ok(namespace) => Some(namespace),
            Err(error) => {
                eprintln!("SKIPPED: no network namespace: {error} (it needs root)");
                None
            }
        }
    }

    #[test]
    fn work_is_done_inside_and_a_program_ends_with_it() {
        let Some(namespace) = namespace() else { return };
        namespace.ip("link add made type veth peer name other\n").unwrap();
        let devices = || std::fs::read_to_string("/proc/thread-self/net/dev");
        assert!(namespace.run(devices).unwrap().contains("made:"));
        assert!(!devices().unwrap().contains("made:"));
        let mut sleep = program("sleep");
        sleep.arg("60").stdin(Stdio::null());
        let mut child = namespace.spawn(sleep).unwrap();
        // Until setpriv has done its work.
        let name = format!("/proc/{}/comm", child.id());
        while std::fs::read_to_string(&name).unwrap() != "sleep\n" {
            thread::yield_now();
        }
        drop(namespace);
        // Ended by a signal: it has no exit code.
        assert_eq!(child.wait().unwrap().code(), None);
    }

    #[test]
    fn what_fails_is_told() {
        let Some(namespace) = namespace() else { return };
        assert!(namespace.ip("link set nobody up\n").is_err());
        assert!(namespace.spawn(Command::new("no-such-program")).is_err());
        // A panic, too.
        let panicked = namespace.run(|| -> io::Result<()> { panic!("on purpose") });
        assert!(panicked.is_err());
    }
}
