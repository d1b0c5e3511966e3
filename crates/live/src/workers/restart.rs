//! Connections over a restart: they are written when a run ends, and read when the next one starts.
//!
//! Contract: the file exists only while no run has the connections. It is removed as the first frames are taken, so
//! after a crash there is none, and an old file is never taken for the connections of now; a run that cannot start
//! leaves it. It appears whole or not at all. Its times count from the last packet that its run saw: connections time
//! out in between as they do without packets. A file that tamis did not write is refused, and left alone; a line that
//! is no connection is reported and skipped. Where there is no file a time of grace begins, if one is configured
//! (`conntrack::Config::grace`).

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conntrack::Listing;
use packet::visible;
use pktio::file::{self, NamedBy};

use crate::answers::Resumed;
use crate::config::{ConfigError, Named, Settings, folder};
use conntrack::SECOND;
use dataplane::Start;

/// Reads the connections of the previous run, or begins the time of grace.
///
/// # Errors
/// The file cannot be read, or tamis did not write it.
pub(crate) fn read(
    settings: &Settings,
    ct: &mut conntrack::Config,
    start: &mut Start,
    warnings: &mut Vec<String>,
) -> Result<Resumed, ConfigError> {
    let text = match &settings.restart.file {
        Some(named) => text(settings, named)?.map(|text| (named, text)),
        None => None,
    };
    let Some((named, text)) = text else {
        let grace = settings.restart.grace;
        ct.grace = grace.saturating_mul(SECOND);
        return Ok(Resumed { connections: 0, grace });
    };
    let file = named.path.display();
    let refuse = |error| settings.refuse(named.at, format_args!("{file}:{error}"));
    let (listing, refused) = Listing::parse_kept(&text).map_err(refuse)?;
    let told = refused.iter().map(|line| format!("{file}:{line}: this connection is lost"));
    warnings.extend(told.map(|line| visible::word(&line).into_owned()));
    let connections = listing.len();
    start.connections = Some(Arc::new(listing));
    Ok(Resumed { connections, grace: 0 })
}

fn text(settings: &Settings, Named { path, at }: &Named) -> Result<Option<String>, ConfigError> {
    let read = file::read(path, NamedBy::Configuration, usize::MAX);
    let text = read.and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
    match text {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(settings.refuse(*at, format_args!("{}: {error}", path.display()))),
    }
}

/// Removes the file: from now on only the run has the connections.
pub(crate) fn begin(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Writes the connections for the next run.
pub(crate) fn write(path: &Path, connections: &Listing) -> io::Result<()> {
    let unfinished = beside(path);
    let mut out = BufWriter::new(file::create_anew(&unfinished, 0o600)?);
    write!(out, "{connections}")?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    fs::rename(&unfinished, path)?;
    // A crash of the machine must not lose the name either.
    File::open(folder(path))?.sync_all()
}

/// The name of a file while it is written.
pub(crate) fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".unfinished");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A reader that has the old file open, or by another name, still has the old one: nobody sees half of the new one.
    #[test]
    fn a_file_appears_whole_and_is_its_owners_alone() {
        let folder = std::env::temp_dir().join(format!("tamis-restart-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let [file, old] = ["connections.txt", "old.txt"].map(|name| folder.join(name));
        fs::write(&file, "the old one").expect("written");
        fs::hard_link(&file, &old).expect("another name");
        write(&file, &Listing::default()).expect("written");
        assert_eq!(fs::read_to_string(&old).expect("read"), "the old one");
        let text = fs::read_to_string(&file).expect("read");
        assert!(!text.contains("old"), "{text}");
        let mode = fs::metadata(&file).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!beside(&file).exists());
        begin(&file).expect("removed");
        assert!(!file.exists());
        begin(&file).expect("there is none");
        fs::remove_dir_all(&folder).expect("removed");
    }
}
