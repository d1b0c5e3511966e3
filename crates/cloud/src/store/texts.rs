//! Records as text: what the values of rows say, in either store.

use anyhow::{Context, Result};
use overlay::{Device, Invitation};
use serde::{Deserialize, Serialize};
use tunnel::PublicKey;

#[derive(Serialize, Deserialize)]
struct KeptDevice {
    key: String,
    number: u32,
    revoked: bool,
}

#[derive(Serialize, Deserialize)]
struct KeptInvitation {
    name: String,
    expires: u64,
    used: Option<String>,
}

/// What is kept of a device by its name.
pub(super) fn of_device(device: &Device) -> Result<String> {
    let Device { key, number, revoked, .. } = device;
    let kept = KeptDevice { key: key.to_string(), number: *number, revoked: *revoked };
    Ok(serde_json::to_string(&kept)?)
}

/// The device of this name that a text is of.
pub(super) fn device(name: &str, text: &str) -> Result<Device> {
    let kept: KeptDevice = serde_json::from_str(text).with_context(|| name.to_owned())?;
    let (key, number, revoked) = (kept.key.parse()?, kept.number, kept.revoked);
    Ok(Device { name: name.parse()?, key, number, revoked })
}

/// What is kept of a one-time key by the key.
pub(super) fn of_invitation(invitation: &Invitation) -> Result<String> {
    let Invitation { name, expires, used, .. } = invitation;
    let (name, used) = (name.to_string(), used.map(|key| key.to_string()));
    Ok(serde_json::to_string(&KeptInvitation { name, expires: *expires, used })?)
}

/// The one-time key, whose public half this is, that a text is of.
pub(super) fn invitation(key: &str, text: &str) -> Result<Invitation> {
    let kept: KeptInvitation = serde_json::from_str(text).with_context(|| key.to_owned())?;
    let used = kept.used.as_deref().map(str::parse::<PublicKey>).transpose()?;
    let (key, name, expires) = (key.parse()?, kept.name.parse()?, kept.expires);
    Ok(Invitation { key, name, expires, used })
}
