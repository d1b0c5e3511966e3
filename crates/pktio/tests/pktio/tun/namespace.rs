//! A network namespace: a thread that works in it for others, and ends with it.

use std::io;
use std::process::Command;
use std::sync::mpsc;
use std::thread;

use super::sys;

type Job = Box<dyn FnOnce() + Send>;

/// Gone with its devices when it is dropped and nothing runs in it.
pub(crate) struct Namespace {
    jobs: mpsc::Sender<Job>,
}

impl Namespace {
    /// A new one. Without the right to make one, says so and gives none.
    pub(crate) fn new() -> Option<Self> {
        let (jobs, orders) = mpsc::channel::<Job>();
        let (tell, made) = mpsc::channel();
        thread::spawn(move || {
            tell.send(sys::unshare_network()).unwrap();
            orders.into_iter().for_each(|job| job());
        });
        match made.recv().unwrap() {
            Ok(()) => Some(Self { jobs }),
            Err(error) => {
                eprintln!("SKIPPED: no network namespace of its own: {error}");
                None
            }
        }
    }

    /// Runs `work` in it and waits. Threads and processes that it starts stay in the namespace.
    pub(crate) fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (tell, done) = mpsc::channel();
        self.jobs.send(Box::new(move || tell.send(work()).unwrap())).unwrap();
        done.recv().expect("what ran there panicked")
    }

    /// Runs a command line in it, which has to succeed.
    pub(crate) fn command(&self, line: &str) -> String {
        let line = line.to_string();
        self.run(move || {
            let mut words = line.split_whitespace();
            let mut command = Command::new(words.next().unwrap());
            let output = command.args(words).output().unwrap_or_else(|error: io::Error| {
                panic!("{line}: {error} (make deps)");
            });
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{line}: {said}");
            String::from_utf8_lossy(&output.stdout).into_owned()
        })
    }
}
