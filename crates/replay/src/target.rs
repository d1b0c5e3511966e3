//! [`Target`]: a file to write, which is there whole or not at all.
//!
//! Contract: what is written goes to another file in its folder, which takes its name once [`Target::keep`] is called;
//! until then, and if anything fails, the name stands for what it stood for. What is no regular file (a pipe, a device,
//! standard output by any of its names) is written as it comes; once nobody reads standard output, nothing more is
//! written, quietly.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use pktio::file::{FileId, place};

use crate::error::Error;
use crate::room::{Room, Within};

/// A file that will take another's name.
#[derive(Debug)]
pub(crate) struct Pending {
    /// Where it is written.
    pub(crate) path: PathBuf,
    /// Where it will lie.
    place: PathBuf,
    is_kept: bool,
}

impl Pending {
    /// Makes an empty file in the folder of the file that a name leads to.
    pub(crate) fn beside(name: &Path) -> io::Result<(Self, File)> {
        let place = place(name);
        let old = match fs::metadata(&place) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Ok(old) if !old.is_file() => {
                return Err(io::Error::other("expected a file, found something else"));
            }
            old => {
                // A file that may not be written is not replaced, either.
                OpenOptions::new().write(true).open(&place)?;
                Some(old?)
            }
        };
        let (path, file) = temporary(&place)?;
        let pending = Self { path, place, is_kept: false };
        if let Some(old) = old {
            // Only root may give a file away; others have made one of their own.
            let _ = fchown(&file, Some(old.uid()), Some(old.gid()));
            file.set_permissions(old.permissions())?;
        }
        Ok((pending, file))
    }

    /// Takes the name.
    pub(crate) fn keep(mut self) -> io::Result<()> {
        fs::rename(&self.path, &self.place)?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.is_kept {
            // It may have been removed with its folder: then nothing is left to do.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A new file in the folder of another.
fn temporary(place: &Path) -> io::Result<(PathBuf, File)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = place.with_file_name(format!(".tamis-{}-{number}.tmp", std::process::id()));
        match File::create_new(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            file => return Ok((path, file?)),
        }
    }
}

/// A file that an option names.
#[derive(Debug)]
pub struct Target {
    name: String,
    to: BufWriter<Within<Out>>,
    pending: Option<Pending>,
}

/// The file or stream that is written to.
#[derive(Debug)]
struct Out {
    file: File,
    is_standard: bool,
    /// The reader has closed its end.
    is_closed: bool,
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_closed {
            return Ok(bytes.len());
        }
        match self.file.write(bytes) {
            Err(error) if self.is_standard && error.kind() == ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(bytes.len())
            }
            done => done,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Target {
    /// Begins a file, which takes of a room; `-` is standard output.
    ///
    /// # Errors
    /// It could not be written.
    pub fn open(name: &str, room: &Room) -> Result<Self, Error> {
        let (out, pending) = begin(name).map_err(failed(name))?;
        Ok(Self { name: name.to_owned(), to: BufWriter::new(room.within(out)), pending })
    }

    /// Writes out what is left, and gives the file its name.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(self) -> Result<(), Error> {
        let Self { name, mut to, pending } = self;
        to.flush().and_then(|()| pending.map_or(Ok(()), Pending::keep)).map_err(failed(&name))
    }

    /// Writes a whole text, and gives the file its name.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_whole(mut self, text: &str) -> Result<(), Error> {
        self.to.write_all(text.as_bytes()).map_err(failed(&self.name))?;
        self.keep()
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn begin(name: &str) -> io::Result<(Out, Option<Pending>)> {
    let stdout = io::stdout();
    let is_stdout = |path: &Path| match FileId::of_stream(&stdout) {
        Ok(standard) => standard.is_same(&FileId::of(path)),
        Err(_) => false,
    };
    let path = Path::new(name);
    if name == "-" || is_stdout(path) {
        let file = File::from(stdout.as_fd().try_clone_to_owned()?);
        return Ok((Out { file, is_standard: true, is_closed: false }, None));
    }
    let out = |file| Out { file, is_standard: false, is_closed: false };
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(ErrorKind::IsADirectory.into()),
        // Opening a pipe waits for its reader.
        Ok(found) if !found.is_file() => {
            Ok((out(OpenOptions::new().write(true).open(path)?), None))
        }
        _ => Pending::beside(path).map(|(pending, file)| (out(file), Some(pending))),
    }
}

fn failed(name: &str) -> impl Fn(io::Error) -> Error {
    move |source| Error::File { file: name.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use tempfile::TempDir;

    use super::*;

    fn names(dir: &TempDir) -> Vec<String> {
        let entries = fs::read_dir(dir.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_there_whole_or_as_it_was() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("out");
        let name = path.to_str().unwrap();
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        // Where we are root; else it is ours as it is.
        let _ = std::os::unix::fs::chown(&path, Some(65_534), None);
        let owner = fs::metadata(&path).unwrap().uid();
        let mut given_up = Target::open(name, &Room::default()).unwrap();
        given_up.write_all(b"half").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        drop(given_up);
        assert_eq!(names(&dir), ["out"]);
        Target::open(name, &Room::default()).unwrap().write_whole("new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        let new = fs::metadata(&path).unwrap();
        assert_eq!((new.permissions().mode() & 0o777, new.uid()), (0o640, owner));
        assert_eq!(names(&dir), ["out"]);
    }

    #[test]
    fn links_stay_links() {
        let dir = TempDir::new().unwrap();
        let at = |name: &str| dir.path().join(name);
        symlink("new", at("dangling")).unwrap();
        Target::open(at("dangling").to_str().unwrap(), &Room::default())
            .unwrap()
            .write_whole("x")
            .unwrap();
        assert_eq!(fs::read_to_string(at("new")).unwrap(), "x");
        assert!(at("dangling").is_symlink());
    }

    #[test]
    fn what_cannot_be_written_is_said_at_once() {
        let dir = TempDir::new().unwrap();
        assert!(Target::open(dir.path().to_str().unwrap(), &Room::default()).is_err());
        assert!(
            Target::open(dir.path().join("no/file").to_str().unwrap(), &Room::default()).is_err()
        );
        Target::open("/dev/null", &Room::default()).unwrap().write_whole("x").unwrap();
    }
}
