//! From the files of a configuration to rules that are published, and what is to be said of them before they run.
//!
//! Contract: what cannot work on a wire is refused: a translation to the address of a port that has none. What works
//! and does nothing there is a warning (`warnings`).

use std::path::Path;
use std::sync::Arc;

use access::list::Schedule;
use host::Host;
use packet::visible;
use rules::Entropy;
use rules::ipset::Sets;
use rules::model::{Action, Family, Rule, Ruleset};
use rules::save::{LoadOptions, load};

use super::config::{At, ConfigError, Named, PortSettings, Settings, Ttl};
use super::warnings::{self, admits};
use crate::bans_text;
use crate::config::Config;

/// Rules as a configuration gives them.
#[derive(Debug)]
pub struct Loaded {
    /// One for each family that has a file.
    pub rulesets: Vec<Arc<Ruleset>>,
    /// How packets are taken to walk them.
    pub config: Config,
    /// What is odd about them, each in one line.
    pub warnings: Vec<String>,
}

/// Rules of a family as text.
#[derive(Debug, Clone)]
pub(super) struct RulesText {
    pub(super) family: Family,
    /// What errors call it: its file, as a rule.
    pub(super) name: String,
    pub(super) text: Arc<str>,
}

/// Why a text of rules is refused.
#[derive(Debug)]
pub(super) enum BadText {
    /// It is none: the name, line and column, and what was expected there.
    Text(String),
    /// No wire can do what it says: the name, the line, and what is wanting.
    Unfit(String),
}

/// The texts of the files of rules.
///
/// # Errors
/// One cannot be read.
pub(super) fn texts(settings: &Settings) -> Result<Vec<RulesText>, ConfigError> {
    let files = settings.rules.iter().map(|rules| {
        let text = text(settings, &rules.file)?.into();
        let name = rules.file.path.display().to_string();
        Ok(RulesText { family: rules.family, name, text })
    });
    files.collect()
}

/// Reads rules, of these texts, and the files of sets and bans.
///
/// # Errors
/// A file cannot be read, is refused, or holds what no wire can do.
pub(super) fn rules(settings: &Settings, texts: &[RulesText]) -> Result<Loaded, ConfigError> {
    let families: Vec<Family> = texts.iter().map(|text| text.family).collect();
    can_answer(settings, &families)?;
    let (mut rulesets, mut told) = (Vec::new(), Vec::new());
    for text in texts {
        let named = settings.rules.iter().find(|rules| rules.family == text.family);
        let at = named.map_or(At { line: 1, column: 1 }, |rules| rules.file.at);
        let (ruleset, odd) = parsed(settings, text)
            .map_err(|(BadText::Text(what) | BadText::Unfit(what))| settings.refuse(at, what))?;
        told.extend(odd);
        rulesets.push(Arc::new(ruleset));
    }
    let sets = match &settings.ipset {
        Some(named) => Some(Sets::parse(&text(settings, named)?).map_err(|error| {
            settings.refuse(named.at, format_args!("{}:{error}", named.path.display()))
        })?),
        None => None,
    };
    let bans = match &settings.bans {
        Some(named) => Some(bans(settings, named)?),
        None => None,
    };
    let config = config(settings, sets, bans);
    told.extend(warnings::without_rules(settings));
    told.extend(warnings::neighbours_dropped(settings, &rulesets, &config));
    let warnings = told.into_iter().map(|line| visible::word(&line).into_owned()).collect();
    Ok(Loaded { rulesets, config, warnings })
}

/// The rules of a text, and what is odd about them.
///
/// # Errors
/// It is refused, or holds what no wire can do.
pub(super) fn parsed(
    settings: &Settings,
    RulesText { family, name, text }: &RulesText,
) -> Result<(Ruleset, Vec<String>), BadText> {
    let options = LoadOptions { family: Some(*family), ..LoadOptions::default() };
    let loaded = load(text, &options);
    let loaded = loaded.map_err(|error| BadText::Text(format!("{name}:{error}")))?;
    has_addresses(settings, *family, loaded.ruleset.rules())
        .map_err(|what| BadText::Unfit(format!("{name}:{what}")))?;
    let odd = loaded.warnings.iter().map(|odd| format!("{name}:{}: {}", odd.line, odd.what));
    let idle = warnings::idle_rules(&loaded.ruleset, settings);
    let idle = idle.into_iter().map(|(line, what)| format!("{name}:{line}: {what}"));
    let odd = odd.chain(idle).collect();
    Ok((loaded.ruleset, odd))
}

/// What packets on a wire are taken to walk by: their table of connections is the only one, and what rules draw is
/// drawn here.
fn config(settings: &Settings, sets: Option<Sets>, bans: Option<Schedule>) -> Config {
    let ct = conntrack::Config {
        mode: conntrack::Mode::Kernel,
        max: settings.connections,
        ..conntrack::Config::default()
    };
    let addresses = settings
        .ports
        .iter()
        .flat_map(|port| port.addresses.iter().map(|address| (port.name.clone(), *address)));
    Config {
        ct,
        sets,
        bans,
        entropy: Entropy::System,
        unknown: settings.unknown,
        pair: false,
        host: Host { addresses: addresses.collect(), ..Host::default() },
        ..Config::default()
    }
}

fn bans(settings: &Settings, named: &Named) -> Result<Schedule, ConfigError> {
    let name = named.path.to_string_lossy();
    let bans = bans_text::parse(&name, &text(settings, named)?);
    bans.map_err(|error| settings.refuse(named.at, format_args!("{name}:{error}")))
}

fn text(settings: &Settings, Named { path, at }: &Named) -> Result<String, ConfigError> {
    let name = path.display();
    let bytes = std::fs::read(path)
        .map_err(|error| settings.refuse(*at, format_args!("{name}: {error}")))?;
    String::from_utf8(bytes).map_err(|error| settings.refuse(*at, format_args!("{name}: {error}")))
}

/// Refuses wires on which packets age where a port has no address to answer them with: one of each family that has
/// rules. Those of a bridge are refused there, too.
pub(super) fn can_answer(settings: &Settings, families: &[Family]) -> Result<(), ConfigError> {
    let is_bridge = families.contains(&Family::Bridge);
    let families: Vec<_> = families.iter().filter(|family| family.is_ip()).collect();
    for wire in settings.wires.iter().filter(|wire| wire.ttl == Ttl::Lower) {
        if is_bridge {
            let what =
                "ttl = \"lower\": expected no bridge rules: a router's packets cross no bridge";
            return Err(settings.refuse(wire.at, what));
        }
        if families.is_empty() {
            let what = "ttl = \"lower\": expected ip or ip6 in [rules], whose packets age";
            return Err(settings.refuse(wire.at, what));
        }
        for family in &families {
            let ports = wire.ports.iter().filter_map(|place| settings.ports.get(*place));
            let lacks = |port: &&PortSettings| port.address_of(**family).is_none();
            if let Some(port) = ports.into_iter().find(lacks) {
                let (family, port) = (family.name(), &port.name);
                let what = "ttl = \"lower\" beside rules of";
                let what =
                    format!("{what} {family}: expected address = [\"…\"] of {family} on {port}");
                return Err(settings.refuse(wire.at, what));
            }
        }
    }
    Ok(())
}

/// Refuses rules that translate to an address that the port has not by which a packet of theirs passes: the line, and
/// what is wanting.
pub(super) fn has_addresses<'r>(
    settings: &Settings,
    family: Family,
    rules: impl Iterator<Item = &'r Rule>,
) -> Result<(), String> {
    for rule in rules {
        let Action::Target(target) = &rule.action else { continue };
        let header = rule.header.as_ref();
        let test = match &*target.name {
            "MASQUERADE" => header.and_then(|header| header.output()),
            "REDIRECT" => header.and_then(|header| header.input()),
            _ => continue,
        };
        let is_met = |port: &&PortSettings| test.is_none_or(|test| admits(test, &port.name));
        let lacks = |port: &&PortSettings| port.address_of(family).is_none();
        if let Some(port) = settings.joined().filter(is_met).find(lacks) {
            let line = rule.line;
            let (target, family, port) = (&target.name, family.name(), &port.name);
            let what = "translates to an address of the port, and there is none";
            let needed = "expected address = [\"…\"] there";
            return Err(format!("{line}: -j {target} {what} of {family} on {port}: {needed}"));
        }
    }
    Ok(())
}

/// A path, for who names a file to users.
pub(super) fn shown(path: &Path) -> String {
    visible::word(&path.to_string_lossy()).into_owned()
}
