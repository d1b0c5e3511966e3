//! [`Group`]: a control group whose programs share a limit of memory, as those of a virtual machine do.
//!
//! Contract: made below the root of the hierarchy that counts memory, of either version, and removed with the value, once the
//! last of its programs is gone. If this process is killed, an empty directory stays.
//! Source: Linux `Documentation/admin-guide/cgroup-v1/memory.rst`, `cgroup-v2.rst`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const ROOT: &str = "/sys/fs/cgroup";
/// Until the kernel has taken leave of the last program.
const PATIENCE: Duration = Duration::from_secs(5);

/// One of them.
#[derive(Debug)]
pub(super) struct Group {
    folder: PathBuf,
    peak: &'static str,
}

impl Group {
    /// A group whose programs have so many bytes of memory.
    ///
    /// # Errors
    /// This process may not make one, or the kernel counts no memory.
    pub(super) fn new(bytes: u64) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (one, own) = (Path::new(ROOT).join("memory"), std::process::id());
        let name = format!("tamis-bench-{own}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let (parent, limit, peak) = match one.is_dir() {
            true => (one, "memory.limit_in_bytes", "memory.max_usage_in_bytes"),
            false => {
                write(&Path::new(ROOT).join("cgroup.subtree_control"), "+memory")?;
                (PathBuf::from(ROOT), "memory.max", "memory.peak")
            }
        };
        let group = Self { folder: parent.join(name), peak };
        fs::create_dir(&group.folder).map_err(|error| told(&group.folder, &error))?;
        write(&group.folder.join(limit), &bytes.to_string())?;
        Ok(group)
    }

    /// Where a process writes 0 to be in it.
    pub(super) fn door(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// The most bytes that it had, those of its sockets and files included.
    pub(super) fn peak(&self) -> io::Result<u64> {
        let path = self.folder.join(self.peak);
        let text = fs::read_to_string(&path).map_err(|error| told(&path, &error))?;
        text.trim().parse().map_err(io::Error::other)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let since = Instant::now();
        while fs::remove_dir(&self.folder).is_err() && since.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text).map_err(|error| told(path, &error))
}

fn told(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_program_beyond_the_limit_is_ended_and_nothing_stays() {
        let group = match Group::new(16 << 20) {
            Ok(group) => group,
            Err(error) => return eprintln!("SKIPPED: no control group: {error} (it needs root)"),
        };
        // The shell reads what has no line's end into memory.
        let run = |bytes: u32| {
            let script = format!(
                "echo 0 >\"$0\" && x=$(head -c {bytes} /dev/zero | tr '\\0' x) && echo ${{#x}}"
            );
            let ran = Command::new("sh").args(["-c", &script]).arg(group.door()).output().unwrap();
            String::from_utf8_lossy(&ran.stdout).trim().to_owned()
        };
        assert_eq!(run(1 << 20), (1 << 20).to_string());
        assert_eq!(run(64 << 20), "");
        let peak = group.peak().unwrap();
        assert!((1 << 20..=16 << 20).contains(&peak), "{peak}");
        let folder = group.folder.clone();
        drop(group);
        assert!(!folder.exists());
    }
}
