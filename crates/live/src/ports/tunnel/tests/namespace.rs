//! A network namespace: a thread that works in it for others, and ends with it.

use std::process::Command;
use std::sync::mpsc;
use std::thread;

use nix::sched::{CloneFlags, unshare};

type Job = Box<dyn FnOnce() + Send>;

/// Gone with its devices when it is dropped and no socket is in it.
pub(crate) struct Namespace {
    jobs: mpsc::Sender<Job>,
    /// The thread, for `ip` to find it by.
    pub(super) thread: i32,
}

impl Namespace {
    /// A new one. Without the right to make one, says so and gives none.
    pub(crate) fn new() -> Option<Self> {
        let (jobs, orders) = mpsc::channel::<Job>();
        let (tell, made) = mpsc::channel();
        thread::spawn(move || {
            let made = unshare(CloneFlags::CLONE_NEWNET);
            tell.send(made.map(|()| rustix::thread::gettid().as_raw_nonzero().get())).unwrap();
            orders.into_iter().for_each(|job| job());
        });
        match made.recv().unwrap() {
            Ok(thread) => Some(Self { jobs, thread }),
            Err(error) => {
                eprintln!("SKIPPED: no network namespace of its own: {error}");
                None
            }
        }
    }

    /// Runs `work` in it and waits. Sockets and processes that it makes stay in the namespace.
    pub(crate) fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (tell, done) = mpsc::channel();
        self.jobs.send(Box::new(move || tell.send(work()).unwrap())).unwrap();
        done.recv().expect("what ran there panicked")
    }

    /// Runs a command line in it, which has to succeed.
    pub(crate) fn command(&self, line: &str) {
        let line = line.to_owned();
        self.run(move || {
            let mut words = line.split_whitespace();
            let output = Command::new(words.next().unwrap()).args(words).output();
            let output = output.unwrap_or_else(|error| panic!("{line}: {error} (make deps)"));
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{line}: {said}");
        });
    }
}
