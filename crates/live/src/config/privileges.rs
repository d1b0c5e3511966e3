//! `[privileges]`: what a run drops once everything is open, and what opens a device that has come back.

use toml::de::DeTable;

use dataplane::keys::{Section, Wrong};

/// Whether privileges are dropped once everything is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Privileges {
    /// The privileges that the kernel can drop.
    #[default]
    Auto,
    /// All privileges, or the run does not start.
    Required,
    /// No privileges.
    Off,
}

/// What opens a device that has come back, where privileges are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reopen {
    /// A process of its own, which keeps the privileges for that.
    #[default]
    Parent,
    /// The run itself, which keeps the privileges for that.
    Keep,
    /// Nothing opens it.
    No,
}

pub(super) fn read(top: &DeTable<'_>) -> Result<(Privileges, Reopen), Wrong> {
    let Some(value) = top.get("privileges") else { return Ok(Default::default()) };
    let section = Section::new("[privileges]", value, &["drop", "reopen"], &[])?;
    let drop =
        [("auto", Privileges::Auto), ("required", Privileges::Required), ("off", Privileges::Off)];
    let reopen = [("parent", Reopen::Parent), ("keep", Reopen::Keep), ("no", Reopen::No)];
    let privileges = section.choice("drop", &drop, &[])?.unwrap_or_default();
    Ok((privileges, section.choice("reopen", &reopen, &[])?.unwrap_or_default()))
}
