//! Programs of the host ([`Command`]), what undoes them ([`Host`]), and the commands of the configuration.

use std::fmt;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{self, Stdio};

use anyhow::{Context, Result, bail};
use live::config::tunnel::TunnelSettings;

use crate::screen;

/// A program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    program: String,
    args: Vec<String>,
    input: String,
    env: Option<(String, String)>,
}

impl Command {
    pub(super) fn new(program: &str, args: &[&str]) -> Self {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        Self { program: program.to_owned(), args, input: String::new(), env: None }
    }

    /// Gives the program this standard input.
    pub(super) fn reading(mut self, input: &str) -> Self {
        self.input = input.to_owned();
        self
    }

    /// Adds a variable to the program's environment.
    pub(super) fn with(mut self, (key, value): (&str, &str)) -> Self {
        self.env = Some((key.to_owned(), value.to_owned()));
        self
    }

    /// Runs it: what it says on standard output. It is in a process group of its own, so that a Ctrl-C does not end it
    /// half-way.
    ///
    /// # Errors
    /// It is not there, or failed.
    pub(super) fn run(&self) -> Result<String> {
        let mut command = process::Command::new(&self.program);
        command.args(&self.args).envs(self.env.iter().map(|(key, value)| (key, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).spawn().with_context(|| self.to_string())?;
        if let Some(mut input) = child.stdin.take() {
            // Who does not read it says why.
            let _ = input.write_all(self.input.as_bytes());
        }
        let output = child.wait_with_output().with_context(|| self.to_string())?;
        if !output.status.success() {
            let said = [output.stderr, output.stdout].concat();
            let said = String::from_utf8_lossy(&said);
            let said = said.lines().find(|line| !line.trim().is_empty()).map(str::to_owned);
            bail!("{self}: {}", said.unwrap_or_else(|| output.status.to_string()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.program, self.args.join(" "))
    }
}

/// `ip` of iproute2.
pub(in super::super) fn ip(args: &[&str]) -> Result<String> {
    Command::new("ip", args).run()
}

/// Whether a program is there to be run.
pub(in super::super) fn is_there(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

/// A host that is ready for a tunnel; with this it is as it was before.
#[derive(Default)]
pub(in super::super) struct Host {
    undo: Vec<Command>,
}

impl Host {
    /// Does something that does not go with the device.
    pub(super) fn step(&mut self, done: &Command, undone: Command) -> Result<()> {
        done.run()?;
        self.undo.push(undone);
        Ok(())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for undone in self.undo.drain(..).rev() {
            if let Err(error) = undone.run() {
                screen::tell(&format!("warning: {error:#}"));
            }
        }
    }
}

/// Runs commands of the configuration, in their order.
///
/// # Errors
/// One failed, and those after it were not run.
pub(in super::super) fn hooks(tunnel: &TunnelSettings, commands: &[String]) -> Result<()> {
    let env = ("TAMIS_TUNNEL", &*tunnel.name);
    commands
        .iter()
        .try_for_each(|command| Command::new("sh", &["-c", command]).with(env).run().map(drop))
}

/// Runs commands as [`hooks`] does, but only warns of failures and runs all commands.
pub(in super::super) fn last_hooks(tunnel: &TunnelSettings, commands: &[String]) {
    for command in commands {
        if let Err(error) = hooks(tunnel, std::slice::from_ref(command)) {
            screen::tell(&format!("warning: {error:#}"));
        }
    }
}

/// Sends a process SIGTERM.
///
/// # Errors
/// The process has ended, or is somebody else's.
pub(in super::super) fn ask_to_end(process: i32) -> Result<()> {
    Command::new("kill", &[&process.to_string()]).run().map(drop)
}
