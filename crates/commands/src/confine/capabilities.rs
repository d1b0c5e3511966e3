//! Capabilities of this thread, and of threads that it starts.

use anyhow::{Context, Result, ensure};
use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// Makes sure that no program executed from now on has more privileges than this one.
pub(super) fn gain_none() -> Result<()> {
    set_no_new_privs(true).context("PR_SET_NO_NEW_PRIVS")
}

/// What opening a device takes.
pub(super) const TO_OPEN: CapabilitySet = CapabilitySet::NET_RAW.union(CapabilitySet::NET_ADMIN);

/// Drops all but these, from the sets that others could be gained by, too.
pub(super) fn keep(kept: CapabilitySet) -> Result<()> {
    drop_bounding(kept)?;
    clear_ambient_capability_set().context("PR_CAP_AMBIENT_CLEAR_ALL")?;
    let kept = capabilities(None).context("capget")?.permitted & kept;
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable })
        .context("capset")?;
    let left = capabilities(None).context("capget")?;
    ensure!(left.effective == kept && left.permitted == kept, "others are left: {left:?}");
    Ok(())
}

/// Empties the bounding set but for these, which only who may change capabilities can: for others nothing is gained by
/// it, as no program gives them any.
fn drop_bounding(kept: CapabilitySet) -> Result<()> {
    let all = (0..u64::BITS).map(|bit| CapabilitySet::from_bits_retain(1 << bit));
    for capability in all.filter(|capability| !kept.contains(*capability)) {
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // The kernel knows no capability from here on, or lets nobody but its owner change them.
            Err(Errno::INVAL | Errno::PERM) => break,
            Err(error) => return Err(error).context("PR_CAPBSET_DROP"),
        }
    }
    Ok(())
}
