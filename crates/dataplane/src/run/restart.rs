//! Connections over a restart: they are written when a run ends, and read when the next one starts.
//!
//! Contract: the file is there only while no run has it. It is removed as the first frames are taken, so after a crash
//! there is none, and an old one is never taken for the connections of now; a run that cannot start leaves it. It appears whole or not at all. What
//! is in it counts from the last packet that its run saw: connections die in between as they do without packets. A
//! file that tamis did not write is refused, and left alone; a line of one that is no connection is told and passed
//! over. Where there is no file a time of grace begins, if one is configured (`conntrack::Config::grace`).

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conntrack::Listing;
use packet::visible;

use super::RunError;
use super::config::{ConfigError, Named, Settings, folder};
use super::load::{Loaded, shown};

const SECOND: u64 = 1_000_000_000;

/// What a run goes on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resumed {
    /// Connections of the run before.
    pub connections: usize,
    /// Seconds from the first packet on in which connections that begin in their middle are established.
    pub grace: u64,
}

/// Reads the connections of the run before, or begins the time of grace.
///
/// # Errors
/// The file cannot be read, or is none of tamis's.
pub(super) fn read(settings: &Settings, loaded: &mut Loaded) -> Result<Resumed, ConfigError> {
    let ct = &mut loaded.config.ct;
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
    loaded.warnings.extend(told.map(|line| visible::word(&line).into_owned()));
    let connections = listing.len();
    ct.start = Some(Arc::new(listing));
    Ok(Resumed { connections, grace: 0 })
}

fn text(settings: &Settings, Named { path, at }: &Named) -> Result<Option<String>, ConfigError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(settings.refuse(*at, format_args!("{}: {error}", path.display()))),
    }
}

/// The run has the connections from now on, and nobody else.
pub(super) fn begin(file: Option<&Path>) -> Result<(), RunError> {
    let Some(file) = file else { return Ok(()) };
    match fs::remove_file(file) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(refused(file, source)),
        _ => Ok(()),
    }
}

/// Writes the connections for the next run.
pub(super) fn write(file: &Path, connections: &Listing) -> Result<(), RunError> {
    replace(file, connections).map_err(|source| refused(file, source))
}

fn replace(file: &Path, connections: &Listing) -> io::Result<()> {
    let unfinished = beside(file);
    let mut options = OpenOptions::new();
    let opened = options.write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    let mut out = BufWriter::new(opened);
    write!(out, "{connections}")?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    fs::rename(&unfinished, file)?;
    // So that its name outlasts a crash of the machine, too.
    File::open(folder(file))?.sync_all()
}

/// Where a file is written before it has its name.
fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".unfinished");
    name.into()
}

fn refused(file: &Path, source: io::Error) -> RunError {
    RunError::Connections { file: shown(file), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Whoever has the old file open, or by another name, still has the old one: nobody sees half of the new one.
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
        begin(Some(&file)).expect("removed");
        assert!(!file.exists());
        begin(Some(&file)).expect("there is none");
        fs::remove_dir_all(&folder).expect("removed");
    }
}
