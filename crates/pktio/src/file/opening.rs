//! Opens, reads and makes files that somebody names, below a folder or anywhere.

use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Bytes of the longest text that is read whole.
pub const LONGEST_TEXT: usize = 256 << 20;

/// The source of a file's name, which decides what the file may be.
#[derive(Debug, Clone, Copy)]
pub enum NamedBy<'f> {
    /// A person, on the command line: a pipe or a device is read, too.
    Person,
    /// The configuration of a run, which is its user's: a file, wherever it lies.
    Configuration,
    /// A file that somebody else may have made, or the folder that it lies in: a file below this folder.
    Folder(&'f Path),
}

/// Opens a file to be read.
///
/// # Errors
/// The file is not there, not readable, or not what it may be.
pub fn open(path: &Path, by: NamedBy<'_>) -> io::Result<File> {
    if let NamedBy::Folder(folder) = by {
        let (root, real) = below(path, folder)?.ok_or_else(|| elsewhere(folder))?;
        regular(&fs::metadata(&real)?)?;
        return still_regular(beneath(&root, &real)?);
    }
    let found = fs::metadata(path)?;
    let is_stream = found.file_type().is_fifo() || found.file_type().is_char_device();
    if matches!(by, NamedBy::Person) && is_stream {
        return File::open(path);
    }
    regular(&found)?;
    still_regular(OpenOptions::new().read(true).custom_flags(UNHURRIED).open(path)?)
}

/// Reads a whole file.
///
/// # Errors
/// See [`open`]; or the file has more bytes than `most`.
pub fn read(path: &Path, by: NamedBy<'_>, most: usize) -> io::Result<Vec<u8>> {
    let file = open(path, by)?;
    // All at once, so that no part of a secret is left where it was before.
    let length = file.metadata()?.len().min(most as u64) as usize;
    filled(Vec::with_capacity(length + 1), file, most)
}

/// Reads a whole text.
///
/// # Errors
/// See [`read`], for [`LONGEST_TEXT`] bytes; or the file is not UTF-8.
pub fn read_text(path: &Path, by: NamedBy<'_>) -> io::Result<String> {
    let bytes = read(path, by, LONGEST_TEXT)?;
    String::from_utf8(bytes)
        .map_err(|error| io::Error::new(ErrorKind::InvalidData, error.utf8_error()))
}

/// Reads to the end, which has to come within `most` bytes.
///
/// # Errors
/// Reading fails, or the end does not come.
pub fn bounded(from: impl Read, most: usize) -> io::Result<Vec<u8>> {
    filled(Vec::new(), from, most)
}

fn filled(mut bytes: Vec<u8>, from: impl Read, most: usize) -> io::Result<Vec<u8>> {
    from.take((most as u64).saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() > most {
        true => {
            let what = format!("expected at most {most} bytes, found more");
            Err(io::Error::new(ErrorKind::FileTooLarge, what))
        }
        false => Ok(bytes),
    }
}

/// Creates a new file of this mode; removes what is at its place first, be it a link.
///
/// # Errors
/// The file cannot be made; also where somebody else makes one at the same moment.
pub fn create_anew(path: &Path, mode: u32) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Never through a link, and never an existing file: O_EXCL.
    OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path)
}

/// A folder and a file, links followed, if the former holds the latter.
///
/// # Errors
/// The folder or the file is not there.
pub fn below(path: &Path, folder: &Path) -> io::Result<Option<(PathBuf, PathBuf)>> {
    let folder = if folder == Path::new("") { Path::new(".") } else { folder };
    let (root, real) = (fs::canonicalize(folder)?, fs::canonicalize(path)?);
    Ok(real.starts_with(&root).then_some((root, real)))
}

fn elsewhere(folder: &Path) -> io::Error {
    let folder = folder.display();
    let what = format!("expected a file below {folder}, found a link that leads elsewhere");
    io::Error::new(ErrorKind::PermissionDenied, what)
}

/// What is no file by now does not hold up who opens it, nor become its terminal.
const UNHURRIED: i32 = OFlags::NONBLOCK.union(OFlags::NOCTTY).bits() as i32;

/// Opens a file by its place in a folder, which has no links any more unless somebody has put one there just now.
#[cfg(target_os = "linux")]
fn beneath(root: &Path, real: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, ResolveFlags, openat2};
    let place = real.strip_prefix(root).map_err(io::Error::other)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match openat2(File::open(root)?, place, flags, Mode::empty(), resolve) {
        // Before Linux 5.6, or where a filter of system calls is older than that.
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => unlinked(real),
        file => Ok(file?.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn beneath(_: &Path, real: &Path) -> io::Result<File> {
    unlinked(real)
}

fn unlinked(real: &Path) -> io::Result<File> {
    let flags = UNHURRIED | OFlags::NOFOLLOW.bits() as i32;
    OpenOptions::new().read(true).custom_flags(flags).open(real)
}

/// What it was when it was looked at it may be no more.
fn still_regular(file: File) -> io::Result<File> {
    regular(&file.metadata()?).map(|()| file)
}

fn regular(found: &Metadata) -> io::Result<()> {
    let kind = found.file_type();
    match kind.is_file() {
        true => Ok(()),
        false if kind.is_dir() => Err(ErrorKind::IsADirectory.into()),
        false => {
            let what = format!("expected a file, found a {}", kind_name(kind));
            Err(io::Error::new(ErrorKind::InvalidInput, what))
        }
    }
}

fn kind_name(kind: FileType) -> &'static str {
    match () {
        () if kind.is_fifo() => "pipe",
        () if kind.is_socket() => "socket",
        () => "device",
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use tempfile::TempDir;

    use super::*;

    /// A file, a folder, a pipe that nobody writes to, and links.
    fn dir() -> TempDir {
        let dir = TempDir::new().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("host/d")).unwrap();
        for file in ["secret", "host/a", "host/d/b"] {
            fs::write(at(file), file).unwrap();
        }
        symlink("d/b", at("host/near")).unwrap();
        symlink(at("host/a"), at("host/absolute")).unwrap();
        symlink("../secret", at("host/far")).unwrap();
        symlink("..", at("host/up")).unwrap();
        symlink("/dev/zero", at("host/zero")).unwrap();
        symlink("nothing", at("host/dangling")).unwrap();
        assert!(Command::new("mkfifo").arg(at("host/pipe")).status().unwrap().success());
        dir
    }

    #[test]
    fn a_folder_leads_nowhere_else() {
        let dir = dir();
        let folder = dir.path().join("host");
        let read = |name: &str| read_text(&folder.join(name), NamedBy::Folder(&folder));
        for (name, text) in [("a", "host/a"), ("near", "host/d/b"), ("absolute", "host/a")] {
            assert_eq!(read(name).unwrap(), text);
        }
        for name in ["far", "up/secret", "../secret", "zero"] {
            let refused = read(name).unwrap_err().to_string();
            assert!(refused.contains("found a link that leads elsewhere"), "{name}: {refused}");
        }
        assert_eq!(read("pipe").unwrap_err().to_string(), "expected a file, found a pipe");
        assert_eq!(read("d").unwrap_err().kind(), ErrorKind::IsADirectory);
        for name in ["dangling", "absent"] {
            assert_eq!(read(name).unwrap_err().kind(), ErrorKind::NotFound, "{name}");
        }
    }

    #[test]
    fn a_link_that_was_put_there_meanwhile_is_not_followed() {
        let dir = dir();
        let root = fs::canonicalize(dir.path().join("host")).unwrap();
        for name in ["far", "near", "up/secret"] {
            assert!(beneath(&root, &root.join(name)).is_err(), "{name}");
        }
        assert!(still_regular(beneath(&root, &root.join("pipe")).unwrap()).is_err());
    }

    #[test]
    fn a_configuration_names_files_and_a_person_what_ends() {
        let dir = dir();
        let at = |name: &str| dir.path().join("host").join(name);
        assert_eq!(read_text(&at("far"), NamedBy::Configuration).unwrap(), "secret");
        for (name, found) in [("pipe", "pipe"), ("zero", "device")] {
            let refused = read_text(&at(name), NamedBy::Configuration).unwrap_err().to_string();
            assert_eq!(refused, format!("expected a file, found a {found}"));
        }
        let writer = std::thread::spawn({
            let pipe = at("pipe");
            move || fs::write(pipe, "by a pipe").unwrap()
        });
        assert_eq!(read_text(&at("pipe"), NamedBy::Person).unwrap(), "by a pipe");
        writer.join().unwrap();
        let endless = read(&at("zero"), NamedBy::Person, 1000).unwrap_err().to_string();
        assert_eq!(endless, "expected at most 1000 bytes, found more");
    }

    #[test]
    fn what_is_made_anew_goes_through_no_link() {
        let dir = dir();
        let (link, secret) = (dir.path().join("host/far"), dir.path().join("secret"));
        drop(create_anew(&link, 0o600).unwrap());
        assert!(!link.is_symlink() && fs::metadata(&link).unwrap().len() == 0);
        assert_eq!(fs::read_to_string(secret).unwrap(), "secret");
        assert!(create_anew(&dir.path().join("host/d"), 0o600).is_err());
    }
}
