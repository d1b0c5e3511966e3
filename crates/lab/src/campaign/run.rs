//! [`Runs`]: runs of the program in a case's folder, within bounds of memory and time.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// Kilobytes of memory that a run may ask for, and seconds that it may take.
const KILOBYTES: u64 = 512 << 10;
const SECONDS: u64 = 60;
/// What `timeout` exits with where it had to end a run.
const TIMED_OUT: i32 = 124;

/// What came of a run.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) code: i32,
    pub(super) out: String,
    pub(super) err: String,
}

pub(super) struct Runs<'c> {
    tamis: &'c Path,
    folder: &'c Path,
    commands: String,
}

impl<'c> Runs<'c> {
    pub(super) fn new(tamis: &'c Path, folder: &'c Path) -> Self {
        Self { tamis, folder, commands: String::new() }
    }

    /// Every command line so far, to be run in the folder.
    pub(super) fn commands(&self) -> &str {
        &self.commands
    }

    /// Runs in the folder. Its exit code is one of these, it does not panic, and what it refuses it refuses in one line.
    pub(super) fn run(&mut self, args: &[&str], codes: &[i32]) -> Result<Ran, String> {
        let _ = writeln!(self.commands, "tamis {}", args.join(" "));
        let shell = format!("ulimit -d {KILOBYTES}; exec timeout {SECONDS} \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.arg("-c").arg(shell).arg(self.tamis).args(args).current_dir(self.folder);
        let output = command.output().map_err(|error| error.to_string())?;
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        let named = args.join(" ");
        let code =
            output.status.code().ok_or_else(|| format!("{named}: ended by a signal: {err}"))?;
        if code == TIMED_OUT {
            return Err(format!("{named}: not done after {SECONDS} seconds"));
        }
        if err.contains("panicked") || !codes.contains(&code) {
            return Err(format!("{named}: exit code {code}: {err}"));
        }
        let out = String::from_utf8(output.stdout).map_err(|_| format!("{named}: no UTF-8"))?;
        if code == 2 && (!out.is_empty() || err.lines().count() != 1) {
            return Err(format!("{named}: refused with {out:?}, and {err:?}"));
        }
        Ok(Ran { code, out, err })
    }

    /// A file that a run wrote.
    pub(super) fn read(&self, name: &str) -> Result<String, String> {
        std::fs::read_to_string(self.folder.join(name)).map_err(|error| format!("{name}: {error}"))
    }

    /// A file for a run to read.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        std::fs::write(self.folder.join(name), bytes).map_err(|error| format!("{name}: {error}"))
    }
}
