//! tamis against this machine's kernel, in network namespaces. Needs root and the legacy tools; without them each test
//! says so and passes.
#![cfg(target_os = "linux")]

mod answers;
mod blobs;
mod campaigns;
mod egress;
mod frames;
mod listed;
mod nat;
mod nft;
mod osf;
mod reach;
mod recent;
mod restored;
mod saved;
mod sets;
mod timed;

use conntrack::Mode;
use dataplane::Config;
use host::{Host, Network};
use lab::scene::{LOCAL_V4, LOCAL_V6};
use packet::Checksums;

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A host between two devices with the addresses of [`lab::scene`], which tracks and verifies as the kernel does.
fn two_devices() -> Config {
    let net = |text: &str| Network::parse(text).expect("a network");
    let address = |name: &str, text: &str| (name.to_owned(), text.parse().expect("an address"));
    Config {
        nets: vec![
            ("t0".to_owned(), net("10.1.0.0/16")),
            ("t1".to_owned(), net("0.0.0.0/0")),
            ("t0".to_owned(), net("fd01::/16")),
            ("t1".to_owned(), net("::/0")),
        ],
        checksums: Checksums::Verify,
        ct: conntrack::Config {
            mode: Mode::Kernel,
            checksums: Checksums::Verify,
            ..conntrack::Config::default()
        },
        host: Host {
            kernel: lab::oracle::load::running(),
            local: Some(LOCAL_V4.iter().chain(&LOCAL_V6).map(|text| net(text)).collect()),
            addresses: vec![
                address("t0", LOCAL_V4[0]),
                address("t1", LOCAL_V4[1]),
                address("t0", LOCAL_V6[0]),
                address("t1", LOCAL_V6[1]),
            ],
            ..Host::default()
        },
        ..Config::default()
    }
}
