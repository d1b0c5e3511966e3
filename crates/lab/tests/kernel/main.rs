//! tamis against this machine's kernel, in network namespaces. Needs root and the legacy tools; without them each test
//! says so and passes.
#![cfg(target_os = "linux")]

mod answers;
mod campaigns;
mod frames;
mod listed;
mod nat;
mod sets;

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
