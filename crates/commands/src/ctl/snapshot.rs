//! `tamis ctl snapshot`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use live::answers::{self, Snapshot};
use live::{Request, ask};
use packet::visible;
use replay::shell;

use super::control::{SocketArgs, nobody, refused};
use crate::collect_command::{Folder, files};
use crate::screen;

/// `tamis ctl snapshot`.
#[derive(Debug, clap::Args)]
pub(crate) struct SnapshotArgs {
    /// The folder to write
    #[arg(value_name = "DIR")]
    pub dir: String,
}

impl SnapshotArgs {
    pub(super) fn run(&self, args: &SocketArgs) -> Result<ExitCode> {
        let answer = ask(&args.socket, &Request::Snapshot {})
            .map_err(|error| nobody(&args.socket, error))?;
        let answer = match answer {
            Ok(answer) => answer,
            Err(refusal) => return Ok(refused(&refusal)),
        };
        let Snapshot { program, files: texts, left_out } = answers::read(answer)?;
        if let Some(name) = texts.keys().find(|name| !files().any(|file| file == *name)) {
            bail!("the run gave a file \"{}\", which no folder of a host has", visible::word(name));
        }
        let folder = Folder::open(&self.dir)?;
        for (name, text) in &texts {
            folder.write(name, text.as_bytes())?;
        }
        folder.ends(texts.keys().map(String::as_str))?;
        if args.json {
            let names: Vec<_> = texts.keys().collect();
            let document = serde_json::json!({
                "dir": self.dir,
                "program": program,
                "files": names,
                "left_out": left_out,
            });
            screen::json(&document)?;
            return Ok(ExitCode::SUCCESS);
        }
        for name in &left_out {
            let name = visible::word(name);
            screen::tell(&format!("tamis: {name} is not in it: the run cannot list that"));
        }
        let dir = visible::word(&self.dir);
        let why = shell::command("why", &[&self.dir, "FILE"], " --packet 1");
        screen::print(&format!(
            "{dir}: {} files, of program {program}\nnext: {why}, of a file that tamis ctl capture wrote\n",
            texts.len()
        ))?;
        Ok(ExitCode::SUCCESS)
    }
}
