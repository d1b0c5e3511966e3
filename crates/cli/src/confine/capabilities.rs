//! Capabilities of this thread, and of those that it starts.

use anyhow::{Context, Result, ensure};
use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// No program that is executed from now on has more privileges than this one.
pub(super) fn gain_none() -> Result<()> {
    set_no_new_privs(true).context("PR_SET_NO_NEW_PRIVS")
}

/// Drops all, from the sets that others could be gained by, too.
pub(super) fn drop_all() -> Result<()> {
    drop_bounding()?;
    clear_ambient_capability_set().context("PR_CAP_AMBIENT_CLEAR_ALL")?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .context("capset")?;
    let left = capabilities(None).context("capget")?;
    ensure!(left.effective.is_empty() && left.permitted.is_empty(), "some are left: {left:?}");
    Ok(())
}

/// Empties the bounding set, which only who may change capabilities can: for others nothing is gained by it, as they
/// have none and no program gives them any.
fn drop_bounding() -> Result<()> {
    for bit in 0..u64::BITS {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << bit)) {
            Ok(()) => {}
            // The kernel knows no capability from here on, or lets nobody but its owner change them.
            Err(Errno::INVAL | Errno::PERM) => break,
            Err(error) => return Err(error).context("PR_CAPBSET_DROP"),
        }
    }
    Ok(())
}
