//! Giving up privileges between opening and running: capabilities, gaining new ones, the system calls that a run makes
//! no use of, and files that are not its own.
//!
//! Contract: to be called by the only thread that there is, after everything is open: what is given up is a thread's
//! own, and threads that start later have it from this one. Of what the kernel does not have, the rest is given up all
//! the same, and it is told once; under [`Privileges::Required`] it is an error. Nothing here can be taken back.
//!
//! Source: capabilities(7), prctl(2) (`PR_SET_NO_NEW_PRIVS`), seccomp(2), landlock(7).

#[cfg(target_os = "linux")]
mod capabilities;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod system_calls;
#[cfg(all(test, target_os = "linux"))]
mod tests;

use anyhow::{Result, bail};
use dataplane::run::GivenUp;
#[cfg(target_os = "linux")]
use dataplane::run::config::{Kind, Reopen};
use dataplane::run::config::{Privileges, Settings};
#[cfg(target_os = "linux")]
use rustix::thread::CapabilitySet;

/// Gives up what a run of this configuration does not need; with what could not be given up, each in one line.
///
/// # Errors
/// Something could not, and it is required.
pub(crate) fn confine(settings: &Settings) -> Result<(GivenUp, Vec<String>)> {
    match settings.privileges {
        Privileges::Off => Ok((GivenUp::default(), Vec::new())),
        asked @ (Privileges::Auto | Privileges::Required) => {
            let (given_up, lacking) = give_up(settings, settings.looks_names_up());
            judged(asked, given_up, lacking)
        }
    }
}

/// Whether what could not be given up is an error.
fn judged(
    asked: Privileges,
    given_up: GivenUp,
    lacking: Vec<String>,
) -> Result<(GivenUp, Vec<String>)> {
    match (asked, &*lacking) {
        (Privileges::Required, [first, ..]) => bail!("[privileges] drop = \"required\": {first}"),
        _ => Ok((given_up, lacking)),
    }
}

#[cfg(target_os = "linux")]
fn give_up(settings: &Settings, looks_up: bool) -> (GivenUp, Vec<String>) {
    let keeps = settings.reopen == Reopen::Keep;
    let kept = if keeps { capabilities::TO_OPEN } else { CapabilitySet::empty() };
    let is_dpdk = settings.ports.iter().any(|port| matches!(port.kind, Kind::Dpdk { .. }));
    let is_java = settings.java().is_some();
    let system_calls = || match (is_dpdk, is_java) {
        // Its threads are there already, and would be under the filter, too.
        (true, _) => bail!("what the drivers of DPDK ask for is not known"),
        (false, true) => bail!("what a JVM asks for is not known"),
        (false, false) => system_calls::keep_needed(looks_up),
    };
    let files = || match is_java {
        true => bail!("what a JVM and its handlers open is not known"),
        false => files::keep_own(settings, looks_up),
    };
    let (given_up, mut lacking) = all_but(kept, files, system_calls);
    let kept_by_others = "the threads that DPDK started before keep their privileges";
    lacking.extend(is_dpdk.then(|| kept_by_others.to_owned()));
    (GivenUp { capabilities: given_up.capabilities && kept.is_empty(), ..given_up }, lacking)
}

/// Keeps only what opening devices takes, `/dev/net/tun` among it or not, and programs on interfaces or not; what could
/// not be given up, each in one line.
#[cfg(target_os = "linux")]
pub(crate) fn keep_opening(is_tun: bool, is_xdp: bool) -> Vec<String> {
    let to_load = if is_xdp { CapabilitySet::BPF } else { CapabilitySet::empty() };
    let system_calls = || system_calls::keep_opening(is_xdp);
    all_but(capabilities::TO_OPEN | to_load, || files::keep_tun(is_tun), system_calls).1
}

/// In this order: no system call is left for it once all but those that are kept are given up.
#[cfg(target_os = "linux")]
fn all_but(
    kept: CapabilitySet,
    files: impl FnOnce() -> Result<()>,
    system_calls: impl FnOnce() -> Result<()>,
) -> (GivenUp, Vec<String>) {
    let mut lacking = Vec::new();
    let mut is_done = |what: &str, done: Result<()>| {
        let told = done.as_ref().err().map(|error| format!("{what} cannot be given up: {error:#}"));
        lacking.extend(told);
        done.is_ok()
    };
    let given_up = GivenUp {
        new_privileges: is_done("new privileges", capabilities::gain_none()),
        files: is_done("files (Landlock)", files()),
        capabilities: is_done("capabilities", capabilities::keep(kept)),
        system_calls: is_done("system calls (seccomp)", system_calls()),
    };
    (given_up, lacking)
}

#[cfg(not(target_os = "linux"))]
fn give_up(_: &Settings, _: bool) -> (GivenUp, Vec<String>) {
    let what = "privileges cannot be given up: this tamis knows how to on Linux alone";
    (GivenUp::default(), vec![what.to_owned()])
}
