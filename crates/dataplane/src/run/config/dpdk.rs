//! `[dpdk]` and `[burst]`: what DPDK's EAL is told, and how many frames go together.

use toml::de::DeTable;

use crate::keys::{Section, Value, Wrong, found, string};

/// Frames that may go together.
const MOST_FRAMES: u64 = 512;
/// A second.
const MOST_DRAIN_US: u64 = 1_000_000;
/// Arguments that the EAL may be given, far more than it has.
const MOST_ARGUMENTS: usize = 256;

/// How many frames go together by ports of DPDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BurstSettings {
    /// Frames that a port hands over at once, at most.
    pub rx: usize,
    /// Frames that are collected before a device is given them.
    pub tx: usize,
    /// Frames whose memory a worker keeps before others can have it.
    pub free: usize,
    /// How long frames are collected before they are given to a device all the same, in microseconds.
    pub drain_us: u32,
}

impl Default for BurstSettings {
    fn default() -> Self {
        Self { rx: 64, tx: 32, free: 256, drain_us: 50 }
    }
}

/// The arguments of the EAL, in order: none where nothing is said.
pub(super) fn eal(top: &DeTable<'_>) -> Result<Vec<String>, Wrong> {
    let Some(value) = top.get("dpdk") else { return Ok(Vec::new()) };
    let given = Section::new("[dpdk]", value, &["eal"], &[])?.need("eal")?;
    let what = "a list of the EAL's arguments, such as \"--no-pci\"";
    let arguments = given.get_ref().as_array().ok_or_else(|| found(given, what))?;
    if arguments.len() > MOST_ARGUMENTS {
        let more = arguments.len();
        return Err((given.span(), format!("expected at most {MOST_ARGUMENTS}, found {more}")));
    }
    arguments.iter().map(argument).collect()
}

fn argument(value: &Value<'_>) -> Result<String, Wrong> {
    match string(value)? {
        text if text.is_empty() || text.contains('\0') => {
            let what = format!("expected an argument of the EAL, found {text:?}");
            Err((value.span(), what))
        }
        text => Ok(text.to_owned()),
    }
}

pub(super) fn burst(top: &DeTable<'_>) -> Result<BurstSettings, Wrong> {
    let mut burst = BurstSettings::default();
    let Some(value) = top.get("burst") else { return Ok(burst) };
    let section = Section::new("[burst]", value, &["rx", "tx", "free", "drain_us"], &[])?;
    let frames = |key, usual| {
        let given = section.number(key, MOST_FRAMES)?;
        let is_none = given == Some(0);
        let wrong = || (value.span(), format!("expected {key} to be at least 1, found 0"));
        if is_none { Err(wrong()) } else { Ok(given.map_or(usual, |frames| frames as usize)) }
    };
    burst.rx = frames("rx", burst.rx)?;
    burst.tx = frames("tx", burst.tx)?;
    burst.free = frames("free", burst.free)?;
    if let Some(drain_us) = section.number("drain_us", MOST_DRAIN_US)? {
        burst.drain_us = drain_us as u32;
    }
    Ok(burst)
}
