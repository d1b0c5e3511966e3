//! What the kernel counts of devices and of processes.
//!
//! Source: `/proc/PID/net/dev`; `/proc/PID/task/TID/schedstat`, whose first number counts nanoseconds on a processor, soft
//! interrupts included; `/proc/PID/status`.

use std::fs;
use std::io;
use std::path::Path;

/// Frames that have come out at the far end.
pub(super) fn come() -> io::Result<u64> {
    received("b0")
}

/// Frames that a device of this thread's namespace has received.
pub(super) fn received(device: &str) -> io::Result<u64> {
    let text = fs::read_to_string("/proc/thread-self/net/dev")?;
    let line = text.lines().find_map(|line| line.trim().strip_prefix(device)?.strip_prefix(':'));
    let packets = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    packets.ok_or_else(|| io::Error::other(format!("{device}: no counters")))
}

/// Nanoseconds that a process was on a processor, with all its threads.
pub(in crate::bench) fn spent_by(process: u32) -> io::Result<u64> {
    let tasks = fs::read_dir(format!("/proc/{process}/task"))?;
    tasks.map(|task| spent_in(&task?.path().join("schedstat"))).sum()
}

/// What one thread was.
pub(super) fn spent_in(file: &Path) -> io::Result<u64> {
    let text = fs::read_to_string(file)?;
    let first = text.split(' ').next().and_then(|first| first.parse().ok());
    first.ok_or_else(|| io::Error::other(format!("{}: no time", file.display())))
}

/// What the kernel spent on soft interrupts that nobody else was charged for.
pub(super) fn spent_by_kernel() -> io::Result<u64> {
    let mut spent = 0;
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
        if name.starts_with("ksoftirqd/") {
            spent += spent_in(&path.join("schedstat"))?;
        }
    }
    Ok(spent)
}

/// Bytes of a process that lie in memory.
pub(in crate::bench) fn resident(process: u32) -> io::Result<u64> {
    in_memory(process, "VmRSS:")
}

/// Bytes of one program's processes that lie in memory. What they have of files is one and the same, the program and its
/// libraries, and lies there once: as much of it counts as the process has that has most.
pub(in crate::bench) fn resident_together(processes: &[u32]) -> io::Result<u64> {
    let (mut own, mut files) = (0, 0);
    for &process in processes {
        own += in_memory(process, "RssAnon:")? + in_memory(process, "RssShmem:")?;
        files = in_memory(process, "RssFile:")?.max(files);
    }
    Ok(own + files)
}

/// What `status` says of a process under this name.
fn in_memory(process: u32, name: &str) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.map(|kilobytes| kilobytes << 10).ok_or_else(|| io::Error::other(format!("no {name}")))
}
