//! [`NamedFile`]: rules that a cases file names. Such a file may come from anybody's pull request, so that it leads to
//! files and folders beside it and below, and nowhere else, unless somebody else says so.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::error::Error;

/// A file, or a folder of a host, that a cases file names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile {
    /// The cases file.
    pub(super) cases: String,
    /// Where it is named: line and column.
    pub(super) at: (usize, usize),
    /// As it is named there.
    pub(super) name: String,
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

    fn folder(&self) -> PathBuf {
        match Path::new(&self.cases).parent() {
            Some(folder) if self.cases != "-" => folder.to_owned(),
            _ => PathBuf::new(),
        }
    }

    /// What is wrong with it, if anything.
    fn leads_outside(&self, path: &Path) -> io::Result<Option<&'static str>> {
        let goes = |step| !matches!(step, Component::Normal(_) | Component::CurDir);
        if Path::new(&self.name).components().any(goes) {
            return Ok(Some("which leads elsewhere"));
        }
        let folder = fs::canonicalize(Path::new(".").join(self.folder()))?;
        let mut files = vec![path.to_owned()];
        if path.is_dir() {
            for entry in fs::read_dir(path)? {
                files.push(entry?.path());
            }
        }
        for file in files {
            // Before it is opened: a pipe would wait, a device never end.
            let found = fs::metadata(&file)?;
            if !found.is_file() && !found.is_dir() {
                return Ok(Some("which is no file"));
            }
            if !fs::canonicalize(&file)?.starts_with(&folder) {
                return Ok(Some("a link that leads elsewhere"));
            }
        }
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
        for folder in ["cases", "cases/fw", "cases/links", "cases.d"] {
            fs::create_dir(at(folder)).unwrap();
        }
        for file in ["outside", "cases/r.v4", "cases/fw/iptables.save", "cases.d/r.v4"] {
            fs::write(at(file), "").unwrap();
        }
        symlink("r.v4", at("cases/near")).unwrap();
        symlink("../outside", at("cases/far")).unwrap();
        symlink("../../outside", at("cases/links/iptables.save")).unwrap();
        symlink("/dev/zero", at("cases/zero")).unwrap();
        for name in ["r.v4", "./r.v4", "fw", "fw/iptables.save", "near", "absent", "-"] {
            let file = named(&dir, name);
            assert_eq!(file.inside().unwrap(), file.path(), "{name}");
        }
        let absolute = at("outside").display().to_string();
        for name in
            ["../outside", "fw/../../outside", &absolute, "../cases.d/r.v4", "far", "links", "zero"]
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
