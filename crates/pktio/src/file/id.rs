//! [`FileId`]: which file a name leads to, so that an output that is an input is known by whatever name, symbolic or hard
//! link it goes; and the [`Files`] of a command.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Symbolic links that are followed, as many as Linux follows.
const MOST_LINKS: usize = 40;

/// What a name leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileId {
    /// A file that is there.
    There {
        /// The device that holds it.
        device: u64,
        /// The file's number on the device.
        inode: u64,
    },
    /// A file that is not there yet.
    New(PathBuf),
    /// A device such as `/dev/null` or a terminal, which keeps nothing.
    Device,
}

impl FileId {
    /// What a name leads to.
    #[must_use]
    pub fn of(name: &Path) -> Self {
        fs::metadata(name).map_or_else(|_| Self::New(place(name)), |found| Self::found(&found))
    }

    /// What standard input or standard output leads to.
    ///
    /// # Errors
    /// The stream is closed.
    pub fn of_stream(stream: &impl AsFd) -> io::Result<Self> {
        let file = File::from(stream.as_fd().try_clone_to_owned()?);
        Ok(Self::found(&file.metadata()?))
    }

    fn found(metadata: &Metadata) -> Self {
        match metadata.file_type().is_char_device() {
            true => Self::Device,
            false => Self::There { device: metadata.dev(), inode: metadata.ino() },
        }
    }

    /// Whether both are one file.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        *self != Self::Device && self == other
    }
}

/// Where the file of a name lies, or would lie: the end of its symbolic links.
#[must_use]
pub fn place(name: &Path) -> PathBuf {
    let mut path = name.to_owned();
    for _ in 0..MOST_LINKS {
        if let Ok(there) = fs::canonicalize(&path) {
            return there;
        }
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        path = match (fs::read_link(&path), fs::canonicalize(folder), path.file_name()) {
            (Ok(to), ..) => folder.join(to),
            (Err(_), Ok(folder), Some(name)) => return folder.join(name),
            _ => return path,
        };
    }
    path
}

/// The files that a command reads and the files that it writes, kept apart before anything is read or written.
#[derive(Debug, Default)]
pub struct Files {
    /// Each with what it is called.
    taken: Vec<(FileId, String)>,
}

impl Files {
    /// Notes a file that is read.
    pub fn reads(&mut self, file: FileId, name: &str) {
        self.taken.push((file, format!("an input, {name}")));
    }

    /// Notes a file that is written, with what it is (`what`) and its name.
    ///
    /// # Errors
    /// The file is read, or written for another purpose.
    pub fn writes(&mut self, file: FileId, what: &str, name: &str) -> Result<(), String> {
        self.free(&file, name)?;
        self.taken.push((file, format!("that of {what}")));
        Ok(())
    }

    /// Refuses a file to be written that is one of these.
    ///
    /// # Errors
    /// The file is one of them.
    pub fn free(&self, file: &FileId, name: &str) -> Result<(), String> {
        match self.taken.iter().find(|(taken, _)| taken.is_same(file)) {
            Some((_, other)) => Err(format!("{name}: expected a file of its own, found {other}")),
            None => Ok(()),
        }
    }

    /// One of these that is to be made in a folder under such a name: what it is called.
    #[must_use]
    pub fn to_be_in(
        &self,
        folder: &Path,
        is_such: impl Fn(&std::ffi::OsStr) -> bool,
    ) -> Option<&str> {
        let lies_there = |(id, _): &&(FileId, String)| match id {
            FileId::New(path) => {
                path.parent() == Some(folder) && path.file_name().is_some_and(&is_such)
            }
            _ => false,
        };
        self.taken.iter().find(lies_there).map(|(_, name)| &**name)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_file_is_itself_by_every_name() {
        let dir = TempDir::new().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("a"), "").unwrap();
        fs::write(at("b"), "").unwrap();
        fs::create_dir(at("d")).unwrap();
        symlink(at("a"), at("symbolic")).unwrap();
        fs::hard_link(at("a"), at("hard")).unwrap();
        let a = FileId::of(&at("a"));
        for name in ["symbolic", "hard", "d/../a", "./a"] {
            assert!(a.is_same(&FileId::of(&at(name))), "{name}");
        }
        assert!(!a.is_same(&FileId::of(&at("b"))));
    }

    #[test]
    fn files_to_be_are_known_by_their_place() {
        let dir = TempDir::new().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("d")).unwrap();
        symlink("new", at("dangling")).unwrap();
        let new = FileId::of(&at("new"));
        assert!(new.is_same(&FileId::of(&at("d/../new"))));
        assert!(new.is_same(&FileId::of(&at("dangling"))));
        assert!(!new.is_same(&FileId::of(&at("newer"))));
        symlink("loop", at("loop")).unwrap();
        assert!(matches!(FileId::of(&at("loop")), FileId::New(_)));
    }

    #[test]
    fn devices_are_nobodys() {
        let null = FileId::of(Path::new("/dev/null"));
        assert!(!null.is_same(&null));
    }
}
