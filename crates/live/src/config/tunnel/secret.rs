//! Files of a configuration: bounded in size; files with secrets must be closed to all but their owner.

use std::fmt;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::str::FromStr;

use packet::visible;
use pktio::file::{self, NamedBy};
use zeroize::Zeroizing;

/// Bytes of a configuration: some 65,536 peers.
const MOST_BYTES: usize = 16 << 20;

/// Bytes of a file with a key, blanks around it included.
const MOST_BYTES_OF_KEY: u64 = 256;

/// The permissions of a file for its group and others.
const OTHERS: u32 = 0o077;

/// The text of a file, unless it is longer than any configuration.
pub(super) fn bounded(path: &Path) -> io::Result<String> {
    let bytes = file::read(path, NamedBy::Configuration, MOST_BYTES)?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// The key that a file holds, or what is wrong with it, in one line.
pub(super) fn key<K: FromStr>(path: &Path) -> Result<K, String> {
    let shown = path.display().to_string();
    let shown = visible::word(&shown);
    let failed = |error: &dyn fmt::Display| format!("{shown}: {error}");
    // Metadata of the open file, which its name need not lead to any more.
    let file = file::open(path, NamedBy::Configuration).map_err(|error| failed(&error))?;
    let held = file.metadata().map_err(|error| failed(&error))?;
    let mode = held.permissions().mode() & 0o7777;
    if mode & OTHERS != 0 {
        let what = format!("its mode is {mode:04o}: others may reach the key; chmod 600 {shown}");
        return Err(failed(&what));
    }
    // With room for all of the key, so that growing leaves no part of it behind.
    let mut text = Zeroizing::new(String::with_capacity(MOST_BYTES_OF_KEY as usize + 1));
    file.take(MOST_BYTES_OF_KEY).read_to_string(&mut text).map_err(|error| failed(&error))?;
    let what = "expected a key, 44 characters of base64 as tamis tunnel keygen prints";
    text.trim().parse().map_err(|_| failed(&what))
}
