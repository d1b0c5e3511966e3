//! `tamis ctl snapshot`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use dataplane::run::{Request, ask};
use packet::visible;
use replay::shell;

use super::super::{CtlArgs, nobody, refused};
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
    pub(super) fn run(&self, args: &CtlArgs, request: &Request) -> Result<ExitCode> {
        let answer = ask(&args.socket, request).map_err(|error| nobody(&args.socket, error))?;
        let answer = match answer {
            Ok(answer) => answer,
            Err(refusal) => return Ok(refused(&refusal)),
        };
        let texts = answer["files"].as_object().into_iter().flatten();
        let texts = texts.filter_map(|(name, text)| Some((name.as_str(), text.as_str()?)));
        let texts: Vec<_> = texts.collect();
        if let Some((name, _)) = texts.iter().find(|(name, _)| !files().any(|file| file == *name)) {
            bail!("the run gave a file \"{}\", which no folder of a host has", visible::word(name));
        }
        let folder = Folder::open(&self.dir)?;
        for (name, text) in &texts {
            folder.write(name, text.as_bytes())?;
        }
        folder.ends(texts.iter().map(|(name, _)| *name))?;
        if args.json {
            let names: Vec<_> = texts.iter().map(|(name, _)| name).collect();
            let document = serde_json::json!({
                "dir": self.dir,
                "program": answer["program"],
                "files": names,
                "left_out": answer["left_out"],
            });
            screen::print(&format!("{document:#}\n"))?;
            return Ok(ExitCode::SUCCESS);
        }
        for name in answer["left_out"].as_array().into_iter().flatten() {
            let name = name.as_str().unwrap_or_default();
            screen::tell(&format!("tamis: {name} is not in it: the run cannot list that"));
        }
        let dir = visible::word(&self.dir);
        let why = shell::command("why", &[&self.dir, "FILE"], " --packet 1");
        screen::print(&format!(
            "{dir}: {} files, of program {}\nnext: {why}, of a file that tamis ctl capture wrote\n",
            texts.len(),
            answer["program"]
        ))?;
        Ok(ExitCode::SUCCESS)
    }
}
