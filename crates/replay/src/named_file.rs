//! [`NamedFile`]: rules that a cases file names. Such a file may come from anybody's pull request, so it leads to files
//! and folders in its own folder and below, and nowhere else, unless `--rules-outside` allows it.
//! [`NamedFile::inside`] reports early where one leads elsewhere; the opener checks it again ([`NamedFile::by`]), as links may change.

use std::fs;
use std::io;
use std::path::{Component, Path};

use pktio::file::{self, NamedBy};

use crate::error::Error;

/// A file, or a folder of a host, that a cases file names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile {
    /// The cases file.
    pub(crate) cases: String,
    /// Where it is named: line and column.
    pub(crate) at: (usize, usize),
    /// The name that it has there.
    pub(crate) name: String,
}

impl NamedFile {
    /// Where it lies, seen from where tamis runs.
    #[must_use]
    pub fn path(&self) -> String {
        let path = self.folder().join(&self.name);
        // What begins with `-` is a file all the same.
        let is_plain = path.components().count() == 1 && self.name.starts_with('-');
        let path = if is_plain { Path::new(".").join(path) } else { path };
        path.display().to_string()
    }

    /// Where it lies, if it is a file below the folder of the cases file, or a folder of such files.
    ///
    /// # Errors
    /// It lies elsewhere, or is something else: line, column and what is expected there.
    pub fn inside(&self) -> Result<String, Error> {
        let path = self.path();
        match self.leads_outside(Path::new(&path)) {
            // What is not there, or cannot be looked at, says so when it is opened.
            Ok(None) | Err(_) => Ok(path),
            Ok(Some(found)) => Err(Error::Cases {
                file: self.cases.clone(),
                line: self.at.0,
                column: self.at.1,
                what: format!(
                    "expected rules in the folder of this file or below (--rules-outside allows others), found \"{}\", {found}",
                    self.name
                ),
            }),
        }
    }

    /// Who names it, for the opener of files.
    pub(crate) fn by(&self) -> NamedBy<'_> {
        NamedBy::Folder(self.folder())
    }

    fn folder(&self) -> &Path {
        match Path::new(&self.cases).parent() {
            Some(folder) if self.cases != "-" => folder,
            _ => Path::new(""),
        }
    }

    /// Why the file's name leads elsewhere, if it does.
    fn leads_outside(&self, path: &Path) -> io::Result<Option<&'static str>> {
        let goes = |step| !matches!(step, Component::Normal(_) | Component::CurDir);
        if Path::new(&self.name).components().any(goes) {
            return Ok(Some("which leads elsewhere"));
        }
        let found = fs::metadata(path)?;
        if !found.is_file() && !found.is_dir() {
            return Ok(Some("which is no file"));
        }
        if file::below(path, self.folder())?.is_none() {
            return Ok(Some("a link that leads elsewhere"));
        }
        // What lies in it is opened as of any folder of a host.
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    fn named(dir: &TempDir, name: &str) -> NamedFile {
        let cases = dir.path().join("cases/c.toml").display().to_string();
        NamedFile { cases, at: (3, 9), name: name.to_owned() }
    }

    #[test]
    fn only_files_below_are_named() {
        let dir = TempDir::new().unwrap();
        let at = |name: &str| dir.path().join(name);
        for folder in ["cases", "cases/fw", "cases.d"] {
            fs::create_dir(at(folder)).unwrap();
        }
        for file in ["outside", "cases/r.v4", "cases/fw/iptables.save", "cases.d/r.v4"] {
            fs::write(at(file), "").unwrap();
        }
        symlink("r.v4", at("cases/near")).unwrap();
        symlink("../outside", at("cases/far")).unwrap();
        symlink("/dev/zero", at("cases/zero")).unwrap();
        for name in ["r.v4", "./r.v4", "fw", "fw/iptables.save", "near", "absent", "-"] {
            let file = named(&dir, name);
            assert_eq!(file.inside().unwrap(), file.path(), "{name}");
        }
        let absolute = at("outside").display().to_string();
        for name in ["../outside", "fw/../../outside", &absolute, "../cases.d/r.v4", "far", "zero"]
        {
            let refused = named(&dir, name).inside().unwrap_err().to_string();
            let start =
                format!("{}:3:9: expected rules in the folder", at("cases/c.toml").display());
            assert!(refused.starts_with(&start), "{name}: {refused}");
        }
    }

    #[test]
    fn no_name_is_standard_input() {
        let path = |cases: &str| {
            let (at, name) = ((1, 1), "-".to_owned());
            NamedFile { cases: cases.to_owned(), at, name }.path()
        };
        assert_eq!(
            (path("c.toml"), path("-"), path("a/c.toml")),
            ("./-".into(), "./-".into(), "a/-".into())
        );
    }
}
