//! Runs the built `tamis` in folders of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The binary under test.
pub(crate) const TAMIS: &str = env!("CARGO_BIN_EXE_tamis");

/// How a command ended.
pub(crate) struct Ended {
    /// Its exit code; -1 for a signal.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("tamis prints UTF-8");
        let code = output.status.code().unwrap_or(-1);
        Self { code, out: text(output.stdout), err: text(output.stderr) }
    }
}

/// Runs the binary in a folder.
pub(crate) fn tamis(folder: &Path, args: &[&str]) -> Ended {
    let output = Command::new(TAMIS).args(args).current_dir(folder).output();
    output.expect("the binary under test starts").into()
}

/// A fresh folder.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// An empty folder of this name.
    pub(crate) fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("the target directory is writable");
        Self(path)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).expect("the folder is writable");
    }

    /// Runs the binary in it.
    pub(crate) fn tamis(&self, args: &[&str]) -> Ended {
        tamis(&self.0, args)
    }
}
