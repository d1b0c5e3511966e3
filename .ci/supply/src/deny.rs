//! What this program goes by of `deny.toml`: registries, licences, and exceptions from advisories.

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::date::Day;
use crate::lock::Locked;

/// The part of `deny.toml` that is read here; the rest is for cargo-deny.
#[derive(Debug)]
pub(crate) struct Deny {
    /// Licences, as SPDX names them.
    pub(crate) allow: Vec<String>,
    pub(crate) exceptions: Vec<Exception>,
    registries: Vec<String>,
}

/// An advisory that may apply, up to and including a day.
#[derive(Debug)]
pub(crate) struct Exception {
    pub(crate) id: String,
    pub(crate) until: Day,
}

#[derive(Deserialize)]
struct File {
    advisories: Advisories,
    licenses: Licenses,
    sources: Sources,
}

#[derive(Deserialize)]
struct Advisories {
    ignore: Vec<Ignored>,
}

#[derive(Deserialize)]
struct Ignored {
    id: String,
    reason: String,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

impl Deny {
    pub(crate) fn read(text: &str) -> Result<Deny> {
        let file: File = toml::from_str(text).context("deny.toml")?;
        let exceptions = file.advisories.ignore.into_iter().map(exception);
        Ok(Deny {
            allow: file.licenses.allow,
            exceptions: exceptions.collect::<Result<_>>()?,
            registries: file.sources.allow_registry,
        })
    }

    /// What is wrong with where a crate comes from. Only the repository's own come from folders.
    pub(crate) fn source(&self, locked: &Locked) -> Option<String> {
        let (source, allowed) = match &locked.source {
            Some(source) => {
                let registry = source.strip_prefix("registry+");
                (source.as_str(), registry.is_some_and(|r| self.registries.iter().any(|a| a == r)))
            }
            None => ("a folder", locked.name.starts_with("tamis")),
        };
        (!allowed)
            .then(|| format!("{}: comes from {source}, which deny.toml does not allow", locked.at))
    }
}

fn exception(Ignored { id, reason }: Ignored) -> Result<Exception> {
    let expected =
        || format!("deny.toml: {id}: expected `until YYYY-MM-DD: why`, found `{reason}`");
    let until = reason.strip_prefix("until ").with_context(expected)?;
    let (day, why) = until.split_once(": ").with_context(expected)?;
    anyhow::ensure!(!why.trim().is_empty(), expected());
    Ok(Exception { until: day.parse().with_context(expected)?, id })
}
