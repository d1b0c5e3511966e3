//! `tamis convert`.

use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args as ClapArgs, ValueEnum};
use replay::nftables::Language;
use replay::walk::HostFolder;
use replay::{RulesFile, rules_json};
use rules::convert::convert;
use rules::model::Family;
use rules::save::LoadOptions;

use crate::{convert_nft, screen};

/// Exit code where packets may get another verdict, and with `--strict` where anything is lost.
const LOST: u8 = 5;

/// `tamis convert`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Exit codes: 0 converted, 2 usage or input error, 5 a rule that decides is lost, so that packets may get
another verdict (what there is was written); with --strict, anything is lost (nothing was written).
What is lost goes to standard error, one line each: FILE:LINE: lost WHAT: RULE.
Examples:
  tamis convert rules.v4 --to ip6tables
  ebtables-save | tamis convert - --from ebtables --to json
  nft list ruleset | tamis convert - --to nft-json")]
pub(crate) struct ConvertArgs {
    /// Rules in any of the forms below, - for standard input; of a folder those that --from names, or the first
    #[arg(value_name = "RULES|HOST")]
    pub rules: String,
    /// What they are [default: told from the text, else iptables]
    #[arg(long, value_name = "FORM")]
    pub from: Option<Form>,
    /// What to write
    #[arg(long, value_name = "FORM")]
    pub to: Form,
    /// Write nothing and exit with 5 if anything is lost
    #[arg(long)]
    pub strict: bool,
}

/// A form of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// iptables-save text
    Iptables,
    /// ip6tables-save text
    Ip6tables,
    /// arptables-save text
    Arptables,
    /// ebtables-save text
    Ebtables,
    /// The JSON document that docs/rules-json.md describes
    Json,
    /// nft list ruleset, or a file for nft -f
    Nft,
    /// nft -j list ruleset
    NftJson,
}

impl Form {
    /// Says which language of nftables it is, if it is one.
    fn nft(self) -> Option<Language> {
        match self {
            Self::Nft => Some(Language::Text),
            Self::NftJson => Some(Language::Json),
            _ => None,
        }
    }

    fn family(self) -> Option<Family> {
        match self {
            Self::Iptables => Some(Family::Ipv4),
            Self::Ip6tables => Some(Family::Ipv6),
            Self::Arptables => Some(Family::Arp),
            Self::Ebtables => Some(Family::Bridge),
            Self::Json | Self::Nft | Self::NftJson => None,
        }
    }
}

/// Converts rules.
pub(crate) fn run(args: &ConvertArgs) -> Result<ExitCode> {
    if let Some(converted) = nftables(args)? {
        return Ok(converted);
    }
    let file = open(args)?;
    let Some(to) = args.to.family() else {
        let document = rules_json::write(&file.ruleset);
        screen::json(&document)?;
        return Ok(ExitCode::SUCCESS);
    };
    let converted = convert(&file.ruleset, to);
    for loss in &converted.losses {
        let line = format!("{}:{}: lost {}: {}", file.file, loss.line, loss.what, loss.text);
        screen::tell(&line);
    }
    if args.strict && !converted.losses.is_empty() {
        return Ok(ExitCode::from(LOST));
    }
    screen::print(&screen::data(&converted.text))?;
    let deciding = converted.losses.iter().filter(|loss| loss.decides).count();
    if deciding == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    let all = converted.losses.len();
    screen::tell(&format!(
        "tamis: packets may get another verdict (losses that decide: {deciding} of {all})"
    ));
    Ok(ExitCode::from(LOST))
}

/// Converts rules of nftables, if they are such rules.
fn nftables(args: &ConvertArgs) -> Result<Option<ExitCode>> {
    let from = args.from.and_then(Form::nft);
    let to = args.to.nft();
    if from.is_none() && (to.is_none() || args.from.is_some()) {
        if to.is_some() {
            bail!(
                "rules of nftables are written from rules of nftables alone: expected --from nft or nft-json"
            );
        }
        return Ok(None);
    }
    let Some(to) = to else {
        bail!("rules of nftables become nft or nft-json alone: expected one of them after --to")
    };
    let converted = convert_nft::convert(&args.rules, from, to)?;
    for loss in &converted.losses {
        screen::tell(loss);
    }
    let lost = !converted.losses.is_empty();
    if !lost || !args.strict {
        screen::print(&screen::data(&converted.text))?;
    }
    Ok(Some(if lost { ExitCode::from(LOST) } else { ExitCode::SUCCESS }))
}

fn open(args: &ConvertArgs) -> Result<RulesFile> {
    let family = args.from.and_then(Form::family);
    let options = LoadOptions { family, ..LoadOptions::default() };
    if let Some(folder) = HostFolder::at(&args.rules) {
        let files = folder.rules_of_iptables(&options)?;
        return files.into_iter().next().context("expected a ruleset");
    }
    let text = replay::read_text(&args.rules)?;
    // No line of save text begins so.
    let is_json = args.from.is_none() && text.trim_start().starts_with('{');
    if !is_json && args.from != Some(Form::Json) {
        return Ok(RulesFile::from_text(&args.rules, text, &options)?);
    }
    let (family, text) =
        rules_json::read(&text).map_err(|what| anyhow!("{}: {what}", args.rules))?;
    let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
    match RulesFile::from_text(&args.rules, text, &options) {
        Ok(file) => Ok(file),
        Err(error) => bail!("{error} (in the save text of the document)"),
    }
}
