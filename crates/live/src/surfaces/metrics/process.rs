//! [`Process`]: the kernel's file about this process, with its memory and its threads.
//!
//! Contract: opened before privileges are given up, which take the way to it; each reading is the kernel's of that moment.
//! Source: proc_pid_status(5).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes of the file that are read: it is a tenth as long, its lists of processors and groups aside.
const LONGEST: usize = 16 * 1024;

/// The file.
#[derive(Debug)]
pub(super) struct Process(File);

/// What it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// Bytes that lie in memory: of no file, and of files, the program among them.
    pub(super) anonymous: u64,
    pub(super) files: u64,
    pub(super) threads: u64,
}

impl Process {
    /// Of this process; where the system has none, there are no figures.
    pub(super) fn open() -> Option<Self> {
        File::open("/proc/self/status").ok().map(Self)
    }

    /// What this process has now.
    pub(super) fn held(&self) -> Option<Held> {
        let mut bytes = vec![0; LONGEST];
        let length = read(&self.0, &mut bytes).ok()?;
        Held::of(&String::from_utf8_lossy(&bytes[..length]))
    }
}

fn read(file: &File, bytes: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], length as u64)? {
            0 => break,
            more => length += more,
        }
    }
    Ok(length)
}

impl Held {
    fn of(text: &str) -> Option<Self> {
        let number = |name: &str| -> Option<u64> {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let bytes = |name| number(name)?.checked_mul(1024);
        Some(Self {
            anonymous: bytes("RssAnon:")?.saturating_add(bytes("RssShmem:")?),
            files: bytes("RssFile:")?,
            threads: number("Threads:")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread;

    #[test]
    fn lines_are_read_by_their_names() {
        let text = "Name:\ttamis\nVmRSS:\t 700 kB\nRssAnon:\t     100 kB\nRssFile:\t  50 kB\n\
            RssShmem:\t   4 kB\nThreads:\t6\n";
        assert_eq!(
            Held::of(text),
            Some(Held { anonymous: 104 << 10, files: 50 << 10, threads: 6 })
        );
        assert_eq!(Held::of(&text.replace("RssAnon", "Rss")), None);
        assert_eq!(Held::of(&text.replace("6", "six")), None);
    }

    #[test]
    fn each_reading_is_of_its_moment() {
        let Some(process) = Process::open() else {
            return eprintln!("SKIPPED: this system has no /proc/self/status");
        };
        let before = process.held().unwrap();
        let kept = vec![1_u8; 64 << 20];
        let held = process.held().unwrap();
        // Other tests give back what they have meanwhile.
        assert!(held.anonymous >= before.anonymous + (48 << 20), "{before:?} {held:?}");
        drop(kept);
        let (end, over) = channel::<()>();
        let waiting = thread::spawn(move || over.recv().is_err());
        assert!(process.held().unwrap().threads >= 2);
        drop(end);
        assert!(waiting.join().unwrap());
    }
}
