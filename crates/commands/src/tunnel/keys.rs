//! `tamis tunnel keygen` and `pubkey`, and how files with secrets are made.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::tunnel::{PresharedKey, PrivateKey, SystemEntropy};
use anyhow::{Context, Result};
use zeroize::Zeroizing;

use crate::screen;

/// Bytes that are read of standard input: a key, and blanks.
const MOST_BYTES: u64 = 256;

/// `tamis tunnel keygen`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: tamis tunnel keygen --out office.key
Without --out the private key is printed, and the public one on standard error.")]
pub(crate) struct KeygenArgs {
    /// Write the key to a new file that only its owner may read
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Make a key that two peers share besides, instead
    #[arg(long)]
    pub preshared: bool,
}

/// Makes a key.
pub(crate) fn generate(args: &KeygenArgs) -> Result<ExitCode> {
    let entropy = &mut SystemEntropy::new();
    let (secret, public) = match args.preshared {
        true => (PresharedKey::generate(entropy)?.text(), None),
        false => {
            let key = PrivateKey::generate(entropy)?;
            (key.text(), Some(key.public()))
        }
    };
    match &args.out {
        Some(file) => {
            write_secret(file, &secret)?;
            public.map_or(Ok(()), |public| screen::print(&format!("{public}\n")))?;
        }
        None => {
            screen::print(&format!("{}\n", *secret))?;
            public.iter().for_each(|public| screen::tell(&format!("public key: {public}")));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the public key of the private one on standard input.
pub(crate) fn public() -> Result<ExitCode> {
    let mut text = Zeroizing::new(String::with_capacity(MOST_BYTES as usize + 1));
    io::stdin().take(MOST_BYTES).read_to_string(&mut text).context("standard input")?;
    let key: PrivateKey = text.trim().parse().context("standard input")?;
    screen::print(&format!("{}\n", key.public()))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a secret to a file that was not there before, and that its owner alone may read.
pub(super) fn write_secret(file: &Path, secret: &str) -> Result<()> {
    let shown = || file.display().to_string();
    let mut options = OpenOptions::new();
    let mut open =
        options.write(true).create_new(true).mode(0o600).open(file).with_context(shown)?;
    open.write_all(format!("{secret}\n").as_bytes()).with_context(shown)
}
