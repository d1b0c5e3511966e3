//! The kernel's tools: what each reads, how it is told of a change, and how it is run.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use rules::model::Family;

use crate::bench::rules::workload::Linear;
use crate::oracle::netns;

/// One of the kernel's two machines, by one of its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Legacy,
    Compat,
    Nft,
}

/// A tool for a family.
#[derive(Debug, Clone, Copy)]
pub(super) struct BackEnd {
    pub(super) tool: Tool,
    pub(super) family: Family,
}

impl BackEnd {
    pub(super) fn name(self) -> &'static str {
        match (self.tool, self.family) {
            (Tool::Legacy, Family::Ipv6) => "ip6tables-legacy",
            (Tool::Legacy, _) => "iptables-legacy",
            (Tool::Compat, Family::Ipv6) => "ip6tables-nft",
            (Tool::Compat, _) => "iptables-nft",
            (Tool::Nft, _) => "nft",
        }
    }

    /// Why it cannot be measured, if so.
    pub(super) fn lacking(self) -> Option<String> {
        let mut asked = Command::new(self.name());
        match asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Some("not installed".to_owned())
            }
            Err(error) => Some(error.to_string()),
            Ok(status) if !status.success() => Some(format!("it ends with {status}")),
            Ok(_) => netns::in_fresh(|| Ok(())).err().map(|error| format!("no namespace: {error}")),
        }
    }

    /// The same rules as this tool reads them.
    pub(super) fn text(self, linear: Linear) -> String {
        if self.tool == Tool::Nft { linear.nft_text() } else { linear.text() }
    }

    /// Loads a whole file.
    pub(super) fn load(self, file: &Path, adds: bool) -> Command {
        let mut command = match self.tool {
            Tool::Nft => Command::new("nft"),
            _ => Command::new(format!("{}-restore", self.name())),
        };
        if self.tool == Tool::Nft {
            command.arg("-f");
        } else if adds {
            command.arg("-n");
        }
        command.arg(file);
        command
    }

    /// A command of one change: its words after the tool's name.
    pub(super) fn change(self, words: &str) -> Command {
        let mut command = Command::new(self.name());
        command.args(words.split_whitespace());
        command
    }
}

/// Runs a command to its end; the error says what it says.
pub(super) fn finish(command: &mut Command, scratch: &Path) -> io::Result<()> {
    // A lock of our own: other rulesets of the machine are none of ours.
    command.env("XTABLES_LOCKFILE", scratch.join("xtables.lock"));
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{command:?}: {}", message.trim())))
}

/// The handle of a rule that this adds. Asking for it later would list the whole chain.
pub(super) fn added(at: &str, rule: &str) -> io::Result<String> {
    let mut add = Command::new("nft");
    add.args(["-e", "-a", "add", "rule"]).args(at.split(' ')).args(rule.split(' '));
    let output = add.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let handle = text.lines().find_map(|line| line.split_once("# handle "));
    let handle = handle.map(|(_, handle)| handle.trim().to_owned());
    handle.ok_or_else(|| io::Error::other(format!("{add:?}: it tells no handle")))
}

/// Bans as `nft -f` reads them.
pub(super) fn nft_bans(text: &str, chain: &str) -> String {
    let source =
        |line: &str| Some(line.split_whitespace().nth(3)?.strip_suffix("/128")?.to_owned());
    let rules = text.lines().filter_map(source);
    let rules = rules
        .map(|source| format!("add rule ip6 filter {chain} ip6 saddr {source} counter drop\n"));
    rules.collect()
}
