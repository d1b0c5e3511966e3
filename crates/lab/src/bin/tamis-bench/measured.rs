//! [`tamis`]: the program that commands measure.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

/// The `tamis` that is measured: the one built beside this program.
pub(crate) fn tamis() -> Result<PathBuf> {
    let own = std::env::current_exe().context("the program's own file")?;
    let tamis = own.with_file_name(format!("tamis{}", std::env::consts::EXE_SUFFIX));
    if !tamis.is_file() {
        bail!(
            "{}: expected tamis beside tamis-bench (cargo build --release --bins)",
            tamis.display()
        );
    }
    Ok(tamis)
}
