//! Builds the shim where pkg-config knows DPDK 22.11, and says so to the compiler (`cfg(dpdk)`); elsewhere the crate
//! has a stub.
//!
//! DPDK is linked dynamically: its EAL then loads all drivers from the folder that it was built with, so the drivers of
//! physical devices are there without being named here.

use std::path::Path;
use std::process::Command;
use std::{env, iter};

/// The release whose interface the shim is written for: 22.11, and its stable releases.
const RELEASE: [&str; 2] = ["libdpdk >= 22.11", "libdpdk < 23"];

fn main() {
    println!("cargo::rustc-check-cfg=cfg(dpdk)");
    println!("cargo::rerun-if-changed=src/shim.c");
    println!("cargo::rerun-if-env-changed=PKG_CONFIG_PATH");
    watch_packages();
    let is_linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    let is_native = env::var("HOST").ok() == env::var("TARGET").ok();
    if !(is_linux && is_native) {
        return;
    }
    let (Some(flags), Some(libraries)) = (pkg_config("--cflags"), pkg_config("--libs")) else {
        return;
    };
    let mut shim = cc::Build::new();
    for flag in flags.split_whitespace() {
        // DPDK's own headers are not held to the warnings of ours.
        match flag.strip_prefix("-I") {
            Some(folder) => shim.flag("-isystem").flag(folder),
            None => shim.flag(flag),
        };
    }
    shim.file("src/shim.c").compile("tamis_dpdk_shim");
    // After the shim, which uses them; the linker keeps the libraries that it needs.
    for library in libraries.split_whitespace().filter_map(|flag| flag.strip_prefix("-l")) {
        println!("cargo::rustc-link-lib={library}");
    }
    println!("cargo::rustc-cfg=dpdk");
}

/// What pkg-config says of DPDK, if it is there and has it.
fn pkg_config(option: &str) -> Option<String> {
    let output = Command::new("pkg-config").arg(option).args(RELEASE).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Builds again once packages are added or removed: a folder changes with them. Without pkg-config, once it is there.
fn watch_packages() {
    let asked = Command::new("pkg-config").args(["--variable", "pc_path", "pkg-config"]).output();
    let folders = asked.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let folders = folders.unwrap_or_else(|_| "/usr/bin".to_owned());
    let found = folders.split(':').filter(|folder| Path::new(folder).is_dir());
    for folder in found.chain(iter::once("build.rs")) {
        println!("cargo::rerun-if-changed={folder}");
    }
}
