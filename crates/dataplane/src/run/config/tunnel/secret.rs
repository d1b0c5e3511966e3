//! Files of a configuration: bounded, and those with secrets closed to others than their owner.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::str::FromStr;

use packet::visible;
use zeroize::Zeroizing;

/// Bytes of a configuration: some 65,536 peers.
const MOST_BYTES: u64 = 16 << 20;

/// Bytes of a file with a key, blanks around it included.
const MOST_BYTES_OF_KEY: u64 = 256;

/// What a group and others may do with a file.
const OTHERS: u32 = 0o077;

/// The text of a file, unless it is longer than any configuration.
pub(super) fn bounded(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(file)?.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    match text.len() as u64 {
        ..=MOST_BYTES => Ok(text),
        _ => Err(io::Error::other(format!("longer than {MOST_BYTES} bytes"))),
    }
}

/// The key that a file holds, or what is wrong with it, in one line.
pub(super) fn key<K: FromStr>(path: &Path) -> Result<K, String> {
    let shown = path.display().to_string();
    let shown = visible::word(&shown);
    let failed = |error: &dyn fmt::Display| format!("{shown}: {error}");
    // Of the file that is read, not of the one that has its name.
    let file = File::open(path).map_err(|error| failed(&error))?;
    let held = file.metadata().map_err(|error| failed(&error))?;
    if !held.is_file() {
        return Err(failed(&"expected a file with a key"));
    }
    let mode = held.permissions().mode() & 0o7777;
    if mode & OTHERS != 0 {
        let what = format!("its mode is {mode:04o}: others may reach the key; chmod 600 {shown}");
        return Err(failed(&what));
    }
    // With room for all of it, so that no part is left where it was before.
    let mut text = Zeroizing::new(String::with_capacity(MOST_BYTES_OF_KEY as usize + 1));
    file.take(MOST_BYTES_OF_KEY).read_to_string(&mut text).map_err(|error| failed(&error))?;
    let what = "expected a key, 44 characters of base64 as tamis tunnel keygen prints";
    text.trim().parse().map_err(|_| failed(&what))
}
