//! From the files of a configuration to rules that are published, and warnings about them.
//!
//! Contract: what cannot work on a wire is refused: a translation to the address of a port that has none. What works
//! and does nothing there is a warning (`warnings`).

use std::path::Path;
use std::sync::Arc;

use access::list::Schedule;
use host::Host;
use packet::visible;
use pktio::file::{NamedBy, read_text};
use rules::Entropy;
use rules::ipset::Sets;
use rules::model::{Action, Family, Rule, Ruleset};
use rules::save::{LoadOptions, load};
use sha2::{Digest, Sha256};

use crate::answers::hex;
use crate::config::{At, ConfigError, Named, PortSettings, Settings, Ttl};
use crate::rules::own;
use crate::rules::warnings::{self, admits};
use dataplane::bans_text;
use dataplane::{Config, Start};

/// Rules as a configuration gives them.
#[derive(Debug)]
pub struct Loaded {
    /// The rulesets, one for each family that has a file.
    pub rulesets: Vec<Arc<Ruleset>>,
    /// The configuration of the handler that walks them.
    pub config: Config,
    /// The sets, bans and connections that there are before any packet.
    pub start: Start,
    /// Warnings about the rules, each in one line.
    pub warnings: Vec<String>,
}

impl<R: AsRef<[Arc<Ruleset>]>> From<(R, Config)> for Loaded {
    fn from((rulesets, config): (R, Config)) -> Self {
        let rulesets = rulesets.as_ref().to_vec();
        Self { rulesets, config, start: Start::default(), warnings: Vec::new() }
    }
}

/// Rules of a family as text.
#[derive(Debug, Clone)]
pub(crate) struct RulesText {
    pub(crate) family: Family,
    /// The name of the text in errors: usually its file.
    pub(crate) name: String,
    pub(crate) text: Arc<str>,
}

/// Why a text of rules is refused.
#[derive(Debug)]
pub(crate) enum BadText {
    /// The text is no rules: the name, line and column, and what was expected there.
    Text(String),
    /// No wire can do what the text says: the name, the line, and what is missing.
    Unfit(String),
}

/// The texts of the files of rules.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn texts(settings: &Settings) -> Result<Vec<RulesText>, ConfigError> {
    let files = settings.rules.iter().map(|rules| {
        let text = text(settings, &rules.file)?.into();
        let name = rules.file.path.display().to_string();
        Ok(RulesText { family: rules.family, name, text })
    });
    files.collect()
}

/// Reads these texts of rules, and the files of sets and bans.
///
/// # Errors
/// A file cannot be read, is refused, or holds what no wire can do.
pub(crate) fn rules(settings: &Settings, texts: &[RulesText]) -> Result<Loaded, ConfigError> {
    let families: Vec<Family> = texts.iter().map(|text| text.family).collect();
    can_answer(settings, &families)?;
    let (mut rulesets, mut told) = (Vec::new(), Vec::new());
    for text in texts {
        let named = settings.rules.iter().find(|rules| rules.family == text.family);
        let at = named.map_or(At { line: 1, column: 1 }, |rules| rules.file.at);
        let (ruleset, odd) = parsed(settings, text)
            .map_err(|(BadText::Text(what) | BadText::Unfit(what))| settings.refuse(at, what))?;
        told.extend(odd);
        rulesets.push(ruleset);
    }
    own::begin(&settings.own, &mut rulesets)
        .map_err(|what| settings.refuse(At { line: 1, column: 1 }, what))?;
    let rulesets: Vec<Arc<Ruleset>> = rulesets.into_iter().map(Arc::new).collect();
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
    let (config, start) = (config(settings), Start { sets, bans, connections: None });
    told.extend(warnings::without_rules(settings));
    told.extend(warnings::neighbours_dropped(settings, &rulesets, &config));
    let warnings = told.into_iter().map(|line| visible::word(&line).into_owned()).collect();
    Ok(Loaded { rulesets, config, start, warnings })
}

/// Reads the rules of a text, with warnings.
///
/// # Errors
/// The text is refused, or holds what no wire can do.
pub(crate) fn parsed(
    settings: &Settings,
    RulesText { family, name, text }: &RulesText,
) -> Result<(Ruleset, Vec<String>), BadText> {
    let options = LoadOptions { family: Some(*family), ..LoadOptions::default() };
    let loaded = load(text, &options);
    let mut loaded = loaded.map_err(|error| BadText::Text(format!("{name}:{error}")))?;
    let left_out = own::take_out(&settings.own, &mut loaded.ruleset);
    has_addresses(settings, *family, loaded.ruleset.rules())
        .map_err(|what| BadText::Unfit(format!("{name}:{what}")))?;
    let odd = loaded.warnings.iter().map(|odd| format!("{name}:{}: {}", odd.line, odd.what));
    let idle = warnings::idle_rules(&loaded.ruleset, settings);
    let idle = idle.into_iter().map(|(line, what)| format!("{name}:{line}: {what}"));
    let left_out = left_out.into_iter().map(|what| format!("{name}: {what}"));
    let odd = odd.chain(idle).chain(left_out).collect();
    Ok((loaded.ruleset, odd))
}

/// The configuration of the handler on a wire: its table of connections is the only one, and random numbers are drawn
/// here.
fn config(settings: &Settings) -> Config {
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
    read_text(path, NamedBy::Configuration)
        .map_err(|error| settings.refuse(*at, format_args!("{name}: {error}")))
}

/// Refuses wires on which packets age where a port has no address to answer them with: one of each family that has
/// rules. Rules of a bridge are refused there, too.
pub(crate) fn can_answer(settings: &Settings, families: &[Family]) -> Result<(), ConfigError> {
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

/// Refuses rules that translate to an address that the port lacks through which their packets pass: the line, and what
/// is missing.
pub(crate) fn has_addresses<'r>(
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

/// A path for messages to users.
pub(crate) fn shown(path: &Path) -> String {
    visible::word(&path.to_string_lossy()).into_owned()
}

/// SHA-256 of each file, in hexadecimal.
pub(crate) fn hashes(files: &[RulesText]) -> Vec<(Family, String)> {
    let hash = |text: &str| hex(&Sha256::digest(text.as_bytes()));
    files.iter().map(|file| (file.family, hash(&file.text))).collect()
}
