//! The demonstration: rules of our own and a capture of real programs, both inside the binary.
//!
//! The capture was recorded by `examples/demo/record.sh`: a client, a router and a server in network
//! namespaces, with curl, dig, ping and nc talking.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use pktio::file::{self, LONGEST_TEXT, NamedBy};

use crate::error::Error;

/// The rules, as `iptables-save` prints them.
pub const RULES: &str = include_str!("../demo/rules.v4");
/// The capture, a file as tcpdump writes it.
pub const CAPTURE: &[u8] = include_bytes!("../demo/office.pcap");

/// Where the demonstration's files lie.
#[derive(Debug)]
pub struct Files {
    /// Where [`RULES`] is written.
    pub rules: PathBuf,
    /// Where [`CAPTURE`] is written.
    pub capture: PathBuf,
    /// Where the report is to go.
    pub report: PathBuf,
}

/// Writes rules and capture into a directory, so that every command of the report can be typed. What is there already
/// is left as it is.
///
/// # Errors
/// A file cannot be written, or one of its name is there that the demonstration did not write: then none is.
pub fn write(dir: &Path) -> Result<Files, Error> {
    let files = Files {
        rules: dir.join("demo-rules.v4"),
        capture: dir.join("demo-office.pcap"),
        report: dir.join("demo-report.html"),
    };
    let fixed = [(&files.rules, RULES.as_bytes()), (&files.capture, CAPTURE)];
    for (path, bytes) in fixed {
        refuse_other(path, |there| there == bytes)?;
    }
    refuse_other(&files.report, |there| is_report(&String::from_utf8_lossy(there)))?;
    for (path, bytes) in fixed {
        match File::create_new(path).and_then(|mut file| file.write_all(bytes)) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(failed(path)(error));
            }
            _ => {}
        }
    }
    Ok(files)
}

/// Whether `tamis demo` wrote a page: its last lines name the command.
fn is_report(page: &str) -> bool {
    let made = page.rsplit_once("<p>Made by tamis ").map(|(_, made)| made);
    let code = made.and_then(|made| made.split_once("<code class=\"command\""));
    let command = code.and_then(|(_, code)| code.split_once('>'));
    command.is_some_and(|(_, command)| command.starts_with("tamis demo"))
}

/// Refuses a file that is there and is not ours.
fn refuse_other(path: &Path, is_ours: impl Fn(&[u8]) -> bool) -> Result<(), Error> {
    match file::read(path, NamedBy::Configuration, LONGEST_TEXT) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Ok(there) if is_ours(&there) => Ok(()),
        Ok(_) => Err(failed(path)(io::Error::other(
            "exists, and tamis demo did not write it (--dir DIR writes elsewhere)",
        ))),
        Err(error) => Err(failed(path)(error)),
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> Error {
    move |source| Error::File { file: path.display().to_string(), source }
}

#[cfg(test)]
mod tests {
    use super::is_report;

    #[test]
    fn a_page_of_ours_is_known_by_its_last_lines() {
        let page = |command| {
            format!("<p>Made by tamis 1 with <code class=\"command\">{command}</code></p>")
        };
        assert!(is_report(&page("tamis demo --dir x")));
        let with_keys = page("tamis demo").replace("\"command\">", "\"command\" tabindex=\"0\">");
        assert!(is_report(&with_keys));
        assert!(!is_report(&page("tamis replay a b")));
        assert!(!is_report("<code class=\"command\">tamis demo"));
    }
}
