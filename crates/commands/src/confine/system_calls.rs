//! System calls that a run makes: seccomp ends the process over any other.
//!
//! Contract: for all threads, later ones included. What is not listed ends the process by SIGSYS, which the
//! kernel logs with the number of the call: no run makes such a call, so the caller is not the run. What a run may
//! ask for with other arguments than it should is refused with an error instead: sockets that leave the host,
//! processes.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter_all_threads,
};

/// System calls of every process: memory, its end, locks, signals.
const OF_ALL: &[c_long] = &[
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_tgkill,
];

/// System calls of a run, on every processor that there is a filter for.
const NEEDED: &[c_long] = &[
    // Threads, their names and places.
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_getcpu,
    libc::SYS_membarrier,
    libc::SYS_prctl,
    libc::SYS_rseq,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    // Time.
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_nanosleep,
    // Waiting.
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    libc::SYS_ppoll,
    libc::SYS_socketpair,
    // Frames, and the control socket.
    libc::SYS_accept4,
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_ioctl,
    libc::SYS_recvfrom,
    libc::SYS_recvmmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    libc::SYS_socket,
    libc::SYS_socketpair,
    // Files: rules that are read again, captures, connections and the journal that are written.
    libc::SYS_close,
    libc::SYS_faccessat,
    libc::SYS_fcntl,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_lseek,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_renameat2,
    libc::SYS_statx,
    libc::SYS_unlinkat,
    libc::SYS_write,
    libc::SYS_writev,
    // What libraries ask before they do any of it.
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getrandom,
    libc::SYS_getuid,
    libc::SYS_prlimit64,
    libc::SYS_sysinfo,
    libc::SYS_uname,
];

/// Older forms of the same.
#[cfg(target_arch = "x86_64")]
const NEEDED_HERE: &[c_long] = &[
    libc::SYS_access,
    libc::SYS_epoll_wait,
    libc::SYS_lstat,
    libc::SYS_open,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_stat,
    libc::SYS_time,
    libc::SYS_unlink,
];
#[cfg(target_arch = "aarch64")]
const NEEDED_HERE: &[c_long] = &[libc::SYS_renameat];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const NEEDED_HERE: &[c_long] = &[];

/// System calls of a process that opens devices when it is asked to, and does nothing else.
const TO_OPEN: &[c_long] = &[
    libc::SYS_close,
    libc::SYS_fcntl,
    libc::SYS_ioctl,
    libc::SYS_openat,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_setsockopt,
    libc::SYS_socket,
    libc::SYS_write,
    libc::SYS_writev,
];

/// Families of sockets that stay on this host, or are ports.
const SOCKETS: [i32; 3] = [libc::AF_UNIX, libc::AF_PACKET, libc::AF_NETLINK];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Keeps the calls that a run makes; a run that looks names up asks servers on other hosts.
pub(super) fn keep_needed(looks_up: bool) -> Result<()> {
    let families: &[i32] = if looks_up { &[libc::AF_INET, libc::AF_INET6] } else { &[] };
    keep(NEEDED.iter().chain(NEEDED_HERE), families)
}

/// Keeps the calls that open devices, with programs on them or not.
pub(super) fn keep_opening(is_xdp: bool) -> Result<()> {
    let (load, families): (_, &[i32]) =
        if is_xdp { (Some(&libc::SYS_bpf), &[libc::AF_XDP]) } else { (None, &[]) };
    keep(TO_OPEN.iter().chain(load), families)
}

fn keep<'n>(kept: impl Iterator<Item = &'n c_long>, families: &[i32]) -> Result<()> {
    // The last one is installed last: installing one is among no calls that are kept.
    for program in [no_clone3()?, refused(families)?, only(OF_ALL.iter().chain(kept))?] {
        apply_filter_all_threads(&program).context("seccomp")?;
    }
    Ok(())
}

fn only<'n>(kept: impl Iterator<Item = &'n c_long>) -> Result<BpfProgram> {
    let rules = kept.map(|number| (*number, Vec::new())).collect();
    filter(rules, SeccompAction::KillProcess, SeccompAction::Allow)
}

/// Refuses sockets that leave the host, except of these families, and processes.
fn refused(but: &[i32]) -> Result<BpfProgram> {
    let family = |family| argument(0, SeccompCmpOp::Ne, family as u64);
    let sockets =
        SeccompRule::new(SOCKETS.iter().chain(but).copied().map(family).collect::<Result<_>>()?)?;
    let threads = libc::CLONE_THREAD as u64;
    let process = SeccompRule::new(vec![argument(0, SeccompCmpOp::MaskedEq(threads), 0)?])?;
    let rules = [(libc::SYS_socket, vec![sockets]), (libc::SYS_clone, vec![process])];
    filter(rules.into(), SeccompAction::Allow, SeccompAction::Errno(libc::EACCES as u32))
}

/// A filter cannot read what `clone3` is asked for. Where it is said not to be there, libraries go on with `clone`.
fn no_clone3() -> Result<BpfProgram> {
    let rules = [(libc::SYS_clone3, Vec::new())];
    filter(rules.into(), SeccompAction::Allow, SeccompAction::Errno(libc::ENOSYS as u32))
}

fn filter(rules: Rules, otherwise: SeccompAction, action: SeccompAction) -> Result<BpfProgram> {
    let processor = std::env::consts::ARCH.try_into().context("no filter for this processor")?;
    Ok(SeccompFilter::new(rules, otherwise, action, processor)?.try_into()?)
}

fn argument(place: u8, is: SeccompCmpOp, value: u64) -> Result<SeccompCondition> {
    Ok(SeccompCondition::new(place, SeccompCmpArgLen::Dword, is, value)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What leads out: other programs, other processes' memory, the kernel's own code, mounts, other namespaces,
    /// other users' rights.
    #[cfg(target_arch = "x86_64")]
    const OUT: &[c_long] = &[
        libc::SYS_add_key,
        libc::SYS_bpf,
        libc::SYS_capset,
        libc::SYS_chmod,
        libc::SYS_chroot,
        libc::SYS_delete_module,
        libc::SYS_execve,
        libc::SYS_execveat,
        libc::SYS_finit_module,
        libc::SYS_fork,
        libc::SYS_fsopen,
        libc::SYS_init_module,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_setup,
        libc::SYS_kcmp,
        libc::SYS_kexec_load,
        libc::SYS_keyctl,
        libc::SYS_kill,
        libc::SYS_link,
        libc::SYS_mknodat,
        libc::SYS_mount,
        libc::SYS_move_mount,
        libc::SYS_open_by_handle_at,
        libc::SYS_open_tree,
        libc::SYS_perf_event_open,
        libc::SYS_personality,
        libc::SYS_pidfd_getfd,
        libc::SYS_pidfd_open,
        libc::SYS_pivot_root,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_ptrace,
        libc::SYS_reboot,
        libc::SYS_seccomp,
        libc::SYS_setgid,
        libc::SYS_setns,
        libc::SYS_setresuid,
        libc::SYS_setuid,
        libc::SYS_symlink,
        libc::SYS_umount2,
        libc::SYS_unshare,
        libc::SYS_userfaultfd,
        libc::SYS_vfork,
    ];

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn no_call_that_leads_out_is_kept() {
        for kept in [OF_ALL, NEEDED, NEEDED_HERE, TO_OPEN] {
            let out: Vec<_> = kept.iter().filter(|number| OUT.contains(number)).collect();
            assert!(out.is_empty(), "{out:?}");
        }
        // Who opens devices neither listens nor writes files' names, and starts no thread.
        for number in [libc::SYS_clone, libc::SYS_bind, libc::SYS_connect, libc::SYS_renameat2] {
            assert!(!TO_OPEN.contains(&number) && !OF_ALL.contains(&number), "{number}");
        }
    }
}
