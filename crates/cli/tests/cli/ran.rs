//! Runs the built binary and keeps what came of it.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use pktio::pcap_file::NgWriter;
use pktio::{Frame, FrameMeta, Interface, LinkType};
use serde_json::Value;

/// The built binary.
pub(crate) const TAMIS: &str = env!("CARGO_BIN_EXE_tamis");
/// The demonstration's rules.
pub(crate) const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../replay/demo/rules.v4");
/// The demonstration's capture.
pub(crate) const CAPTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../replay/demo/office.pcap");

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    /// Exit code; `None` after a signal.
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Ran {
    /// The JSON document of a run that went well.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{}", self.err);
        serde_json::from_str(&self.out).unwrap()
    }

    /// Asserts a usage or input error: code 2, nothing on standard output, one line on standard error.
    pub(crate) fn refusal(&self) -> &str {
        assert_eq!(self.code, Some(2), "{self:?}");
        assert_eq!(self.out, "");
        assert_eq!(self.err.lines().count(), 1, "{}", self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self.err.trim_end().strip_prefix("tamis: ").expect("the program's name comes first")
    }
}

/// Runs with nothing on standard input.
pub(crate) fn tamis(args: &[&str]) -> Ran {
    fed(args, b"")
}

/// Starts with a pipe at each of its standard streams.
pub(crate) fn piped(args: &[&str]) -> Child {
    let mut command = Command::new(TAMIS);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Runs with these bytes on standard input.
pub(crate) fn fed(args: &[&str], input: &[u8]) -> Ran {
    let mut child = piped(args);
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // Beside the reading of its output, so that no pipe fills up; who refuses early does not read on.
    let feeder = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    output.into()
}

/// Runs in a directory.
pub(crate) fn within(directory: &Path, args: &[&str]) -> Ran {
    Command::new(TAMIS).args(args).current_dir(directory).output().unwrap().into()
}

/// Runs with at most `kilobytes` of anonymous memory, and at most a minute long.
pub(crate) fn confined(kilobytes: u64, args: &[&str]) -> Ran {
    let shell = format!("ulimit -d {kilobytes}; exec timeout 60 \"$0\" \"$@\"");
    Command::new("sh").arg("-c").arg(shell).arg(TAMIS).args(args).output().unwrap().into()
}

/// Runs with at most `kilobytes` of address space, which is more than it can use, and at most a minute long.
pub(crate) fn cramped(kilobytes: u64, args: &[&str]) -> Ran {
    cramped_arenas(kilobytes, "", args)
}

/// Runs as [`cramped`] does, with at most this number of the C library's arenas, which are address space of a thread's
/// own: by default there are eight for each core.
pub(crate) fn cramped_arenas(kilobytes: u64, arenas: &str, args: &[&str]) -> Ran {
    let shell = format!("ulimit -v {kilobytes}; exec timeout 60 \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.arg("-c").arg(shell).arg(TAMIS).args(args).env("MALLOC_ARENA_MAX", arenas);
    command.output().unwrap().into()
}

/// A file of `tests/rules`.
pub(crate) fn rules(name: &str) -> String {
    format!("{}/tests/rules/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Says why a test cannot run, past the capture of test output.
pub(crate) fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

/// A directory of a test's own, removed when dropped.
pub(crate) struct Scratch(PathBuf);

/// The folder for the folders of tests: Cargo's, or, where other users may write to a folder above it, the system's
/// temporary folder, since a control socket refuses the former.
fn scratch_folder() -> PathBuf {
    let ours = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let user = fs::metadata("/proc/self").map_or(0, |own| own.uid());
    let is_apart = |folder: &Path| {
        let found = fs::metadata(folder).unwrap();
        [0, user].contains(&found.uid()) && found.mode() & 0o022 == 0
    };
    if ours.ancestors().all(is_apart) { ours.to_owned() } else { std::env::temp_dir() }
}

impl Scratch {
    pub(crate) fn new(test: &str) -> Self {
        let directory = scratch_folder().join(format!("{test}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        Self(directory)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Runs in it.
    pub(crate) fn tamis(&self, args: &[&str]) -> Ran {
        within(&self.0, args)
    }

    /// Path of a file in it.
    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file, and gives its path.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let file = self.file(name);
        fs::write(&file, bytes).unwrap();
        file
    }

    /// Writes a capture of packet specs at an interface of this name, and gives its path.
    pub(crate) fn capture(&self, name: &str, interface: &str, specs: &[&str]) -> String {
        let mut writer = NgWriter::new(Vec::new()).unwrap();
        let name_of = Some(interface.to_owned());
        let link_type = LinkType::ETHERNET;
        writer.add_interface(&Interface { name: name_of, link_type, snaplen: 0 }).unwrap();
        for spec in specs {
            let frame = replay::spec::parse(spec).unwrap().frame;
            let meta = FrameMeta { wire_length: frame.len() as u32, ..FrameMeta::default() };
            writer.write(0, Frame { bytes: &frame, meta: &meta }, None).unwrap();
        }
        self.write(name, writer.finish().unwrap())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
