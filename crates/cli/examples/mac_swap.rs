//! A middlebox in Rust: `mac_swap CONFIG` runs a configuration of `tamis run`, and swaps the MAC addresses of each frame that
//! its rules let leave.

#[path = "../../commands/src/dpdk_ports.rs"]
mod dpdk_ports;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::{env, fs};

use anyhow::{Context, Result};
use dpdk_ports::DpdkPorts;
use live::config::Settings;
use live::{DroppedPrivileges, Middlebox, Waiting};
use pktio::{InProcess, Opener};

/// Swaps the addresses of each frame; a frame passes unless it is said otherwise.
struct MacSwap;

impl Middlebox for MacSwap {
    fn burst(&mut self, frames: &mut Waiting) {
        for shown in frames.frames() {
            if let Some((destination, rest)) = shown.bytes.split_at_mut_checked(6)
                && let Some(source) = rest.get_mut(..6)
            {
                destination.swap_with_slice(source);
            }
        }
    }
}

fn main() -> Result<()> {
    let config = env::args().nth(1).context("expected a configuration")?;
    let text = fs::read_to_string(&config).with_context(|| config.clone())?;
    let settings = Settings::from_text(&config, &text)?;
    let opener: Arc<dyn Opener> = Arc::new(InProcess);
    let opened = live::open(&settings, &opener, &mut DpdkPorts::default())?;
    let run = opened.start_with(DroppedPrivileges::default(), &mut |_| Box::new(MacSwap))?;
    eprintln!("ready");
    let (status, ended) = run.wait(&AtomicBool::new(false), |line| eprintln!("{line}"));
    print!("{}", status.text());
    Ok(ended?)
}
