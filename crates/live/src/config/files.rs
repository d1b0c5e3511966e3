//! Files of a configuration: the folders that hold them.

use std::path::Path;

use super::{Named, Settings};

impl Settings {
    /// Folders of the files that a run reads again on SIGHUP.
    #[must_use]
    pub fn folders_read(&self) -> Vec<&Path> {
        let named = self.read_again().map(|named| &*named.path);
        folders([Path::new(&self.file)].into_iter().chain(named))
    }

    /// Folders that a run writes files to, or removes them from, while it runs or when it ends.
    #[must_use]
    pub fn folders_written(&self) -> Vec<&Path> {
        let files = self.restart.file.iter().chain(&self.socket);
        let mut folders = folders(files.map(|file| &*file.path));
        folders.extend(self.journal.iter().map(|journal| &*journal.path));
        folders
    }

    /// The files of rules, sets and bans.
    pub(crate) fn read_again(&self) -> impl Iterator<Item = &Named> {
        let rules = self.rules.iter().map(|rules| &rules.file);
        rules.chain(&self.ipset).chain(&self.bans)
    }
}

/// The folders that files are in, each once.
fn folders<'f>(files: impl Iterator<Item = &'f Path>) -> Vec<&'f Path> {
    let mut folders: Vec<&Path> = files.map(folder).collect();
    folders.sort_unstable();
    folders.dedup();
    folders
}

/// The folder that a file is in.
pub(crate) fn folder(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
