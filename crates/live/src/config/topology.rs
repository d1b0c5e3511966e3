//! Which cores workers run on: the machine's cores, the order in which they are given out, and pinning.
//!
//! Contract: only cores that this process may run on are given out. A worker pins itself, from within its thread, so that
//! what it allocates first is its node's. Where the system says nothing of a core, it is taken for one of the first
//! socket, by itself.
//!
//! Source: Linux `Documentation/admin-guide/cputopology.rst`; `sched_setaffinity(2)`.

use std::fs;
use std::io;
use std::path::Path;

use crate::config::Cores;

/// Where Linux describes its processors.
const SYSTEM: &str = "/sys/devices/system";

/// A logical processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processor {
    /// The processor's number in the system.
    pub number: usize,
    /// The number of its socket in the system.
    pub socket: usize,
    /// The number of its core in the system; processors of one core have the same.
    pub core: usize,
    /// The NUMA node of its memory.
    pub node: Option<usize>,
}

/// The processors that this process may run on, by their numbers.
#[must_use]
pub fn here() -> Vec<Processor> {
    processors(Path::new(SYSTEM), &allowed())
}

/// The processors for `count` workers, or for as many as `cores` says; `None` stands for any. Fewer processors than
/// workers are given out repeatedly.
pub(crate) fn chosen(cores: &Cores, count: Option<usize>) -> Vec<Option<usize>> {
    choose(cores, count, processors(Path::new(SYSTEM), &allowed()))
}

fn choose(cores: &Cores, count: Option<usize>, mut all: Vec<Processor>) -> Vec<Option<usize>> {
    match cores {
        Cores::Any => return vec![None; count.unwrap_or(1)],
        Cores::These(these) => return these.iter().copied().map(Some).collect(),
        Cores::Compact => all.sort_by_key(|one| (one.socket, one.core, one.number)),
        Cores::Scatter => scatter(&mut all),
    }
    let count = count.unwrap_or(all.len()).max(1);
    match all.is_empty() {
        true => vec![None; count],
        false => all.iter().map(|one| Some(one.number)).cycle().take(count).collect(),
    }
}

/// Sorts processors: one of each socket in turn, and the second thread of a core after the first ones of all.
fn scatter(all: &mut [Processor]) {
    all.sort_by_key(|one| (one.socket, one.core, one.number));
    let before = all.to_vec();
    let nth_of_core = |at: usize| {
        let same =
            |other: &&Processor| (other.socket, other.core) == (before[at].socket, before[at].core);
        before[..at].iter().filter(same).count()
    };
    let threads: Vec<usize> = (0..before.len()).map(nth_of_core).collect();
    let nth_of_socket = |at: usize| {
        let same = |other: &usize| {
            (before[*other].socket, threads[*other]) == (before[at].socket, threads[at])
        };
        (0..at).filter(same).count()
    };
    let mut order: Vec<usize> = (0..before.len()).collect();
    order.sort_by_key(|at| (threads[*at], nth_of_socket(*at), before[*at].socket));
    for (place, at) in all.iter_mut().zip(order) {
        *place = before[at];
    }
}

/// Reads the system's description of these processors.
fn processors(system: &Path, numbers: &[usize]) -> Vec<Processor> {
    let read = |path: String| fs::read_to_string(system.join(path)).ok()?.trim().parse().ok();
    let one = |number: &usize| Processor {
        number: *number,
        socket: read(format!("cpu/cpu{number}/topology/physical_package_id")).unwrap_or(0),
        core: read(format!("cpu/cpu{number}/topology/core_id")).unwrap_or(*number),
        node: node_of(&system.join(format!("cpu/cpu{number}"))),
    };
    numbers.iter().map(one).collect()
}

/// The NUMA node of a processor, whose folder has a link to the node's folder.
fn node_of(processor: &Path) -> Option<usize> {
    let entries = fs::read_dir(processor).ok()?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter_map(|name| name.strip_prefix("node")?.parse().ok()).next()
}

/// The warning where a device's memory is far from a worker: the worker, its node and the device's.
pub(crate) fn apart(device: &str, cores: &[Option<usize>]) -> Option<String> {
    let path = format!("/sys/class/net/{device}/device/numa_node");
    let near: usize = fs::read_to_string(path).ok()?.trim().parse().ok()?;
    let pinned: Vec<usize> = cores.iter().flatten().copied().collect();
    far(device, near, &processors(Path::new(SYSTEM), &pinned))
}

fn far(device: &str, near: usize, processors: &[Processor]) -> Option<String> {
    let mut all = processors.iter().enumerate();
    let (worker, node) = all.find_map(|(worker, processor)| {
        processor.node.filter(|node| *node != near).map(|node| (worker, node))
    })?;
    Some(format!("{device} is at node {near}, and worker {worker} runs at node {node}"))
}

/// The processors that this process may run on.
#[cfg(target_os = "linux")]
pub(crate) fn allowed() -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|number| set.is_set(*number)).collect()
}

/// Makes the calling thread run on this processor alone.
///
/// # Errors
/// There is no processor of this number, or this process may not run there.
#[cfg(target_os = "linux")]
pub(crate) fn pin(processor: usize) -> io::Result<()> {
    use rustix::thread::{CpuSet, sched_setaffinity};
    if processor >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut set = CpuSet::new();
    set.set(processor);
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn allowed() -> Vec<usize> {
    (0..std::thread::available_parallelism().map_or(1, usize::from)).collect()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn pin(_: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sockets with two cores of two threads each, numbered as firmware does: first threads first.
    fn machine() -> Vec<Processor> {
        let one = |number| Processor {
            number,
            socket: number / 2 % 2,
            core: number % 2,
            node: Some(number / 2 % 2),
        };
        (0..8).map(one).collect()
    }

    fn numbers(cores: &Cores, count: Option<usize>) -> Vec<usize> {
        choose(cores, count, machine()).into_iter().flatten().collect()
    }

    #[test]
    fn compact_fills_a_core_then_a_socket_and_scatter_takes_turns() {
        assert_eq!(numbers(&Cores::Compact, None), [0, 4, 1, 5, 2, 6, 3, 7]);
        assert_eq!(numbers(&Cores::Scatter, None), [0, 2, 1, 3, 4, 6, 5, 7]);
        assert_eq!(numbers(&Cores::Scatter, Some(2)), [0, 2]);
        assert_eq!(numbers(&Cores::Compact, Some(9))[8], 0);
        assert_eq!(numbers(&Cores::These(vec![3, 1]), None), [3, 1]);
        assert_eq!(choose(&Cores::Any, Some(3), machine()), [None; 3]);
        assert_eq!(choose(&Cores::Compact, None, Vec::new()), [None]);
    }

    #[test]
    fn a_device_far_from_a_worker_is_told() {
        let all = machine();
        assert_eq!(far("eth0", 0, &all[..2]), None);
        let told = far("eth0", 0, &all[1..4]).unwrap();
        assert_eq!(told, "eth0 is at node 0, and worker 1 runs at node 1");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_pins_itself_and_no_other() {
        let all = allowed();
        let last = *all.last().unwrap();
        let pinned = std::thread::spawn(move || pin(last).map(|()| allowed()));
        assert_eq!(pinned.join().unwrap().unwrap(), [last]);
        assert_eq!(allowed(), all);
        assert!(pin(1 << 20).is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_system_tells_of_every_processor() {
        let all = processors(Path::new(SYSTEM), &allowed());
        assert_eq!(all.len(), allowed().len());
        let alone = processors(Path::new("/nowhere"), &[5]);
        assert_eq!(alone, [Processor { number: 5, socket: 0, core: 5, node: None }]);
    }
}
