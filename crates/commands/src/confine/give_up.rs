//! [`confine`]: gives up what a run does not need, in an order in which it can be given up.

use anyhow::{Result, bail};
use live::DroppedPrivileges;
#[cfg(target_os = "linux")]
use live::config::{Kind, Reopen};
use live::config::{Privileges, Settings};
#[cfg(target_os = "linux")]
use rustix::thread::CapabilitySet;

#[cfg(target_os = "linux")]
use super::{capabilities, files, system_calls};

/// Gives up what a run of this configuration does not need; with what could not be given up, each in one line.
///
/// # Errors
/// Something could not, and it is required.
pub(crate) fn confine(settings: &Settings) -> Result<(DroppedPrivileges, Vec<String>)> {
    match settings.privileges {
        Privileges::Off => Ok((DroppedPrivileges::default(), Vec::new())),
        asked @ (Privileges::Auto | Privileges::Required) => {
            let (given_up, lacking) = give_up(settings, settings.looks_names_up());
            judged(asked, given_up, lacking)
        }
    }
}

/// Whether what could not be given up is an error.
pub(super) fn judged(
    asked: Privileges,
    given_up: DroppedPrivileges,
    lacking: Vec<String>,
) -> Result<(DroppedPrivileges, Vec<String>)> {
    match (asked, &*lacking) {
        (Privileges::Required, [first, ..]) => bail!("[privileges] drop = \"required\": {first}"),
        _ => Ok((given_up, lacking)),
    }
}

#[cfg(target_os = "linux")]
pub(super) fn give_up(settings: &Settings, looks_up: bool) -> (DroppedPrivileges, Vec<String>) {
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
    (
        DroppedPrivileges { capabilities: given_up.capabilities && kept.is_empty(), ..given_up },
        lacking,
    )
}

/// Keeps only what opening devices takes, `/dev/net/tun` among it or not, and programs on interfaces or not; what could
/// not be given up, each in one line.
#[cfg(target_os = "linux")]
pub(crate) fn keep_opening(is_tun: bool, is_xdp: bool) -> Vec<String> {
    let to_load = if is_xdp { CapabilitySet::BPF } else { CapabilitySet::empty() };
    let system_calls = || system_calls::keep_opening(is_xdp);
    all_but(capabilities::TO_OPEN | to_load, || files::keep_tun(is_tun), system_calls).1
}

/// Gives up in this order: once system calls are limited, none is left for the rest.
#[cfg(target_os = "linux")]
fn all_but(
    kept: CapabilitySet,
    files: impl FnOnce() -> Result<()>,
    system_calls: impl FnOnce() -> Result<()>,
) -> (DroppedPrivileges, Vec<String>) {
    let mut lacking = Vec::new();
    let mut is_done = |what: &str, done: Result<()>| {
        let told = done.as_ref().err().map(|error| format!("{what} cannot be given up: {error:#}"));
        lacking.extend(told);
        done.is_ok()
    };
    let given_up = DroppedPrivileges {
        new_privileges: is_done("new privileges", capabilities::gain_none()),
        files: is_done("files (Landlock)", files()),
        capabilities: is_done("capabilities", capabilities::keep(kept)),
        system_calls: is_done("system calls (seccomp)", system_calls()),
    };
    (given_up, lacking)
}

#[cfg(not(target_os = "linux"))]
fn give_up(_: &Settings, _: bool) -> (DroppedPrivileges, Vec<String>) {
    let what = "privileges cannot be given up: this tamis knows how to on Linux alone";
    (DroppedPrivileges::default(), vec![what.to_owned()])
}
