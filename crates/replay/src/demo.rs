//! The demonstration: rules of our own and a capture of real programs, both inside the binary.
//!
//! The capture was recorded by `examples/demo/record.sh`: a client, a router and a server in network
//! namespaces, with curl, dig, ping and nc talking.

use std::path::{Path, PathBuf};

use crate::error::Error;

/// The rules, as `iptables-save` prints them.
pub const RULES: &str = include_str!("../demo/rules.v4");
/// The capture.
pub const CAPTURE: &[u8] = include_bytes!("../demo/office.pcap");

/// Where the demonstration's files were written.
#[derive(Debug)]
pub struct Files {
    /// The rules.
    pub rules: PathBuf,
    /// The capture.
    pub capture: PathBuf,
}

/// Writes rules and capture into a directory, so that every command of the report can be typed.
///
/// # Errors
/// A file cannot be written.
pub fn write(dir: &Path) -> Result<Files, Error> {
    let files = Files { rules: dir.join("demo-rules.v4"), capture: dir.join("demo-office.pcap") };
    let write = |path: &Path, bytes: &[u8]| {
        std::fs::write(path, bytes)
            .map_err(|source| Error::File { file: path.display().to_string(), source })
    };
    write(&files.rules, RULES.as_bytes())?;
    write(&files.capture, CAPTURE)?;
    Ok(files)
}
