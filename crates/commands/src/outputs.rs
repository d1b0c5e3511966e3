//! Files that a command reads and files that it writes, kept apart before anything is read or written.
//!
//! Contract: files count, not names: symbolic and hard links lead to one, and so does `/dev/stdin`.

use std::io;
use std::path::Path;

use anyhow::{Error, Result, bail};
use pktio::file::{self, FileId, place};
use replay::{CaptureName, may_write};

/// Whether a name is one of standard output's.
pub(crate) fn is_standard(name: &str) -> bool {
    let standard = || FileId::of_stream(&io::stdout());
    name == "-" || standard().is_ok_and(|it| it.is_same(&FileId::of(Path::new(name))))
}

/// The files of a command.
#[derive(Debug, Default)]
pub(crate) struct Files(file::Files);

impl Files {
    /// Notes files that are read; a capture may name its interface.
    pub(crate) fn reads(&mut self, names: impl IntoIterator<Item = String>) {
        for name in names {
            let file = CaptureName::parse(&name).file;
            let id = match &*file {
                "-" => FileId::of_stream(&io::stdin()).unwrap_or(FileId::Device),
                file => FileId::of(Path::new(file)),
            };
            self.0.reads(id, &name);
        }
    }

    /// Notes files that are written; standard output always is.
    ///
    /// # Errors
    /// One of them is read, or written by another option.
    pub(crate) fn writes(&mut self, outputs: &[(&'static str, Option<&str>)]) -> Result<()> {
        let standard = FileId::of_stream(&io::stdout()).unwrap_or(FileId::Device);
        self.0.free(&standard, "standard output").map_err(Error::msg)?;
        for (option, name) in outputs {
            let Some(name) = name else { continue };
            let id = match *name {
                "-" => standard.clone(),
                name => FileId::of(Path::new(name)),
            };
            self.0.writes(id, option, &format!("{option} {name}")).map_err(Error::msg)?;
        }
        Ok(())
    }

    /// Notes the folder of `--split`.
    ///
    /// # Errors
    /// A file that may be written there is read, or written by an option.
    pub(crate) fn splits(&self, folder: &Path) -> Result<()> {
        let shown = folder.display();
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            if may_write(&entry.file_name()) {
                let id = FileId::of(&entry.path());
                self.0.free(&id, &format!("--split {shown}")).map_err(Error::msg)?;
            }
        }
        match self.0.to_be_in(&place(folder), may_write) {
            Some(other) => bail!("--split {shown}: expected files of its own, found {other}"),
            None => Ok(()),
        }
    }
}
