//! `Cargo.lock`: the crates that cargo takes, with version and source.

use anyhow::{Context, Result};
use semver::Version;
use serde::Deserialize;
use toml::Spanned;

/// A crate of a lock file.
#[derive(Debug)]
pub(crate) struct Locked {
    /// File, line, name and version, as a message begins.
    pub(crate) at: String,
    pub(crate) name: String,
    pub(crate) version: Version,
    /// None for what lies in a folder.
    pub(crate) source: Option<String>,
    /// SHA-256 of the packed crate, as the registry has it.
    pub(crate) checksum: Option<String>,
}

#[derive(Deserialize)]
struct File {
    package: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: Spanned<String>,
    version: Version,
    source: Option<String>,
    checksum: Option<String>,
}

/// Reads the text of a lock file of that name.
pub(crate) fn read(file: &str, text: &str) -> Result<Vec<Locked>> {
    let read: File = toml::from_str(text).with_context(|| file.to_owned())?;
    let locked = |Package { name, version, source, checksum }: Package| {
        let line = text[..name.span().start].matches('\n').count() + 1;
        let name = name.into_inner();
        Locked { at: format!("{file}:{line}: {name} {version}"), name, version, source, checksum }
    };
    Ok(read.package.into_iter().map(locked).collect())
}
