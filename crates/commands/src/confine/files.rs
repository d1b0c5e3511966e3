//! Files that a run opens, reads and writes while it runs: Landlock refuses it all others.
//!
//! Contract: folders, not files, as who changes a file may put another one in its place. What is open stays open.

use anyhow::{Context, Result, ensure};
use landlock::{
    ABI, Access, AccessFs, BitFlags, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr,
    RulesetStatus, path_beneath_rules,
};
use live::config::{Reopen, Settings};

/// The newest ABI whose rights are meant here; an older kernel gives its own rights.
const KNOWN: ABI = ABI::V5;

/// Where the kernel says what devices and processors there are.
const OF_DEVICES: [&str; 2] = ["/sys/class/net", "/sys/devices"];

/// The device that TUN devices are made by.
const TUN: &str = "/dev/net/tun";

/// Where libraries look how names are looked up, and find what does.
const OF_NAMES: [&str; 6] =
    ["/etc", "/run/systemd/resolve", "/lib", "/lib64", "/usr/lib", "/usr/lib64"];

/// Refuses all but what the configuration names, and what looking names up takes.
pub(super) fn keep_own(settings: &Settings, looks_up: bool) -> Result<()> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let write = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile;
    let of_names = if looks_up { &OF_NAMES[..] } else { &[] };
    let opened_again = (settings.reopen == Reopen::Keep).then_some(TUN);
    let rules = |folders, rights: BitFlags<AccessFs>| path_beneath_rules(folders, rights);
    let all = refused()?
        .add_rules(rules(settings.folders_read(), read))?
        .add_rules(rules(settings.folders_written(), read | write))?
        .add_rules(path_beneath_rules(OF_DEVICES, read))?
        .add_rules(path_beneath_rules(of_names, read))?
        .add_rules(path_beneath_rules(opened_again, used()))?;
    enforce(all)
}

/// Refuses all but what TUN devices are made by, and that, too, where none is to be.
pub(super) fn keep_tun(is_used: bool) -> Result<()> {
    enforce(refused()?.add_rules(path_beneath_rules(is_used.then_some(TUN), used()))?)
}

/// Rights that are kept on [`TUN`].
fn used() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev
}

/// All files, until rules except some.
fn refused() -> Result<RulesetCreated> {
    Ok(Ruleset::default().handle_access(AccessFs::from_all(KNOWN))?.create()?)
}

fn enforce(rules: RulesetCreated) -> Result<()> {
    let status = rules.restrict_self().context("landlock_restrict_self")?;
    ensure!(status.ruleset != RulesetStatus::NotEnforced, "this kernel has none, or it is off");
    Ok(())
}
