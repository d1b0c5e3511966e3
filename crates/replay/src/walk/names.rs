//! Names of interfaces that people type: the host's links say which there are; where nothing gives these, the rules name
//! some.
//!
//! Contract: where the host's links are given, a name that is none of them is an error with the nearest one. Where they
//! are not, a name that is in no rule is worth a warning, if rules name any.

use dataplane::Config;
use host::{Links, nearest};
use packet::visible::word;
use rules::model::IfaceTest;

use crate::error::Error;
use crate::rules_file::RulesFile;
use crate::source::CaptureName;

/// Names that an error lists where none is near.
const LISTED: usize = 6;

/// Whether the host has an interface of this name, as far as its links are given.
///
/// # Errors
/// It has none: what was expected instead.
pub fn fit(name: &str, links: &Links) -> Result<(), String> {
    let known = || links.all().iter().map(|link| &*link.name);
    if links.all().is_empty() || links.named(name).is_some() {
        return Ok(());
    }
    let meant = match nearest(name, known()) {
        Some(near) => format!("the nearest is {near}"),
        None => {
            let some: Vec<&str> = known().take(LISTED).collect();
            let more = if links.all().len() > LISTED { ", …" } else { "" };
            some.join(", ") + more
        }
    };
    Err(format!("an interface that the host has ({meant}), found \"{}\"", word(name)))
}

/// Refuses interfaces in `IFACE=FILE` that the host does not have.
///
/// # Errors
/// The host has none of that name.
pub(crate) fn fit_captures(captures: &[String], links: &Links) -> Result<(), Error> {
    captures.iter().try_for_each(|given| {
        let Some(name) = CaptureName::parse(given).interface else { return Ok(()) };
        fit(&name, links).map_err(|what| Error::Given(format!("{}: expected {what}", word(given))))
    })
}

/// Whether some rule names an interface, or none names any but `lo`.
#[must_use]
pub fn is_in_rules(files: &[RulesFile], name: &str) -> bool {
    let mut names_any = false;
    let names = |test: &IfaceTest| match test.prefix {
        true => name.starts_with(&*test.name),
        false => name == &*test.name,
    };
    for file in files {
        for (at, .., rule) in file.rules() {
            let header = rule.header.as_ref().map(|header| {
                [header.input(), header.output(), header.logical_input(), header.logical_output()]
            });
            for test in header.into_iter().flatten().flatten() {
                names_any |= &*test.name != "lo";
                if names(test) {
                    return true;
                }
            }
            if rule.matches.iter().any(|used| used.name == "physdev") {
                names_any = true;
                if names_port(&file.rule_text(at), name) {
                    return true;
                }
            }
        }
    }
    !names_any
}

/// Whether a rule with `-m physdev` names a port of a bridge.
fn names_port(rule: &str, name: &str) -> bool {
    let words: Vec<&str> = rule.split(' ').collect();
    words.windows(2).filter(|pair| pair[0].starts_with("--physdev-")).any(|pair| {
        pair[1].strip_suffix('+').map_or(pair[1] == name, |start| name.starts_with(start))
    })
}

/// Warns of interfaces of options that no rule names, where nothing gives the host's.
#[must_use]
pub fn option_warnings(files: &[RulesFile], config: &Config) -> Vec<String> {
    warnings(of_options(config), files, &config.host.links)
}

/// Interfaces that options name, each with the option.
pub(crate) fn of_options(config: &Config) -> impl Iterator<Item = (&'static str, &str)> {
    let nets = config.nets.iter().map(|(name, _)| ("--net ", &**name));
    let input = config.input.iter().map(|name| ("--in ", &**name));
    nets.chain(input).chain(config.output.iter().map(|name| ("--out ", &**name)))
}

/// Warns of interfaces of a packet spec, each with what says it, that no rule names, where nothing gives the host's.
pub fn warnings<'n>(
    given: impl IntoIterator<Item = (&'static str, &'n str)>,
    files: &[RulesFile],
    links: &Links,
) -> Vec<String> {
    let unnamed = |(_, name): &(&'static str, &'n str)| {
        *name != "lo" && links.all().is_empty() && !is_in_rules(files, name)
    };
    let given = given.into_iter().filter(unnamed);
    given
        .map(|(option, name)| format!("{option}{}: no rule names this interface", word(name)))
        .collect()
}
