//! The settings that a configuration of wg-quick becomes ([`Imported`]): read, written and shown.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use live::config::tunnel::TunnelSettings;
use live::config::{At, ConfigError};
use packet::visible;
use pktio::file::{NamedBy, read_text};
use zeroize::Zeroizing;

use super::lines::Lines;
use super::{interface, peers};
use crate::screen;
use crate::tunnel::keys::write_secret;

/// `tamis tunnel import`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: tamis tunnel import /etc/wireguard/wg0.conf --out /etc/tamis")]
pub(crate) struct ImportArgs {
    /// A configuration of wg-quick
    #[arg(value_name = "WG_QUICK_FILE")]
    pub file: PathBuf,
    /// The folder where NAME.toml and files with keys are written
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub out: PathBuf,
}

/// What a configuration of wg-quick becomes.
struct Imported {
    settings: TunnelSettings,
    /// Files that hold the keys.
    secrets: Vec<(PathBuf, Zeroizing<String>)>,
    /// What does not carry over.
    lost: Vec<String>,
}

/// Reads it, and writes what it becomes.
pub(crate) fn run(args: &ImportArgs) -> Result<ExitCode> {
    let file = args.file.display().to_string();
    let text = read_text(&args.file, NamedBy::Person).with_context(|| file.clone())?;
    let text = Zeroizing::new(text);
    let stem = args.file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let imported = read(&file, &text, stem, &args.out)?;
    let mut written = Written::default();
    imported.write(&mut written)?;
    let files = std::mem::take(&mut written.0);
    screen::print(&imported.told(&files))?;
    Ok(ExitCode::SUCCESS)
}

/// What the text of `file` becomes, for a tunnel of this name, in this folder.
fn read(file: &str, text: &str, name: &str, folder: &Path) -> Result<Imported, ConfigError> {
    let refuse = |(line, column, what)| {
        let at = At { line, column };
        ConfigError { file: file.to_owned(), at, what }
    };
    let lines = Lines::read(text).map_err(refuse)?;
    let mut lost = Vec::new();
    let (mut settings, secret) =
        interface::read(&lines, name, folder, &mut lost).map_err(refuse)?;
    let mut secrets = vec![(settings.key_file.path.clone(), secret)];
    settings.peers = peers::read(&lines, name, folder, &mut secrets, &mut lost).map_err(refuse)?;
    Ok(Imported { settings, secrets, lost })
}

/// Files that were written, which go with this.
#[derive(Default)]
struct Written(Vec<PathBuf>);

impl Drop for Written {
    fn drop(&mut self) {
        for file in &self.0 {
            // Who removed it before has done what is to be done.
            let _ = fs::remove_file(file);
        }
    }
}

impl Imported {
    fn write(&self, written: &mut Written) -> Result<()> {
        for (file, secret) in &self.secrets {
            write_secret(file, secret)?;
            written.0.push(file.clone());
        }
        let file = Path::new(&self.settings.file);
        let text = self.settings.to_toml();
        let shown = || self.settings.file.clone();
        let mut options = OpenOptions::new();
        let mut open = options.write(true).create_new(true).open(file).with_context(shown)?;
        written.0.push(file.to_owned());
        open.write_all(text.as_bytes()).with_context(shown)?;
        match TunnelSettings::read(file) {
            Ok(_) => Ok(()),
            Err(error) => bail!("it says what a tunnel here cannot be: {}", error.what),
        }
    }

    /// What was done, for a screen.
    fn told(&self, files: &[PathBuf]) -> String {
        let mut text = String::new();
        for file in files {
            text += &format!("wrote {}\n", visible::word(&file.display().to_string()));
        }
        text += "what does not carry over:\n";
        for lost in &self.lost {
            text += &format!("  {}\n", visible::word(lost));
        }
        text + &format!("next: tamis tunnel up {}\n", visible::word(&self.settings.file))
    }
}
