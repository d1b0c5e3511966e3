//! `tamis diff`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args as ClapArgs;
use conntrack::Mode;
use host::Network;
use lint::{Compared, Given, diff_on};
use replay::walk::{HostFacts, HostFolder, Setup, WalkOptions, words};
use replay::{Room, RulesFile, Target, json_text};
use rules::model::{Family, Hook};
use rules::save::LoadOptions;

use crate::diff_capture::OnCaptures;
use crate::outputs::Files;
use crate::screen;
use crate::standard_input::standard_input_once;
use crate::walk_args::{HostArgs, PathChoice, warn_of_foreign};

/// Exit code where something differs.
const DIFFERENT: u8 = 1;
/// Exit code where something may differ.
const UNKNOWN: u8 = 4;

/// `tamis diff`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Exit codes: 0 every packet gets the same verdict, 1 some get another, 2 usage or input error, 4 not known.
What is not given is taken from the folders, OLD's first. Packets are as they come; marks and translations are
followed through all tables of their way.
Every region has a packet that the walks through both rulesets confirm. Packets that end inside a header are left out.
Examples:
  tamis diff old.v4 new.v4
  tamis diff fw new.v4 --record cases.toml     # fw: a folder of tamis collect; then tamis test new.v4 cases.toml
  tamis diff old.v4 new.v4 --on office.pcap
  iptables-save | tamis diff rules.v4 - --json")]
pub(crate) struct DiffArgs {
    /// The old rules of iptables or ip6tables, - for standard input, or a host's folder
    #[arg(value_name = "OLD")]
    pub old: String,
    /// The new ones
    #[arg(value_name = "NEW")]
    pub new: String,
    /// Family of the rules [default: told from the text, else ip; of a folder, IPv4]
    #[arg(long, value_parser = words::family)]
    pub family: Option<Family>,
    /// Only this table; also the table of `iptables -S` text
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// Only packets of this way through the host [default: all]
    #[arg(long)]
    pub path: Option<PathChoice>,
    /// Only packets that come in by this interface, and those of the host itself
    #[arg(long = "in", value_name = "IFACE")]
    pub input: Option<String>,
    /// Only packets that go out by this interface, and those for the host itself
    #[arg(long = "out", value_name = "IFACE")]
    pub output: Option<String>,
    #[command(flatten)]
    pub host: HostArgs,
    /// Say, too, which packets of this capture get another verdict (FILE or IFACE=FILE); may be repeated, merged by time
    #[arg(long, value_name = "CAPTURE")]
    pub on: Vec<String>,
    /// A network behind an interface, for the packets of --on; may be repeated, the longest prefix counts
    #[arg(long = "net", value_name = "IFACE=CIDR", value_parser = words::net, requires = "on")]
    pub nets: Vec<(String, Network)>,
    /// Write the packets that show the regions as a cases file: `tamis test NEW FILE` passes, and with OLD it fails
    #[arg(long, value_name = "FILE")]
    pub record: Option<String>,
    /// Print JSON (tamis.diff/1)
    #[arg(long)]
    pub json: bool,
}

/// Compares.
pub(crate) fn run(args: &DiffArgs) -> Result<ExitCode> {
    standard_input_once([&args.old, &args.new])?;
    let mut named = Files::default();
    let files = [&args.old, &args.new].into_iter().chain(args.host.inputs());
    named.reads(files.chain(&args.on).cloned());
    named.writes(&[("--record", args.record.as_deref())])?;
    let (old, new) = (open(args, &args.old)?, open(args, &args.new)?);
    let setup = setup(args)?;
    warn_of_foreign(&setup.config.host.foreign);
    let found = match diff_on(&old.ruleset, &new.ruleset, &given(args, &setup)) {
        Ok(found) => found,
        Err(_) => bail!("{} and {}: expected rules of one family", old.file, new.file),
    };
    if let Some(name) = &args.record {
        let locals: Vec<String> = args.host.local.iter().map(Network::to_string).collect();
        Target::open(name, &Room::default())?.write_whole(&found.cases(&locals))?;
    }
    let on = match args.on.is_empty() {
        true => None,
        false => Some(OnCaptures::of([&old, &new], &args.on, &setup, &found)?),
    };
    screen::write(|out| {
        if args.json {
            let mut document = found.json();
            if let Some((on, fields)) = on.as_ref().zip(document.as_object_mut()) {
                fields.insert("on".to_owned(), on.json());
            }
            return json_text::pretty(out, &document);
        }
        let on = on.as_ref().map_or_else(String::new, |on| on.text(&found));
        out.write_all(screen::data(&format!("{}{on}", found.text())).as_bytes())
    })?;
    Ok(match found.compared() {
        Compared::Same => ExitCode::SUCCESS,
        Compared::Different => ExitCode::from(DIFFERENT),
        Compared::Unknown => ExitCode::from(UNKNOWN),
    })
}

/// What is known of the host: by options, else by the first folder.
fn setup(args: &DiffArgs) -> Result<Setup> {
    let options = WalkOptions {
        path: args.path.and_then(PathChoice::path),
        input: args.input.clone(),
        output: args.output.clone(),
        // Both rulesets would meet the other chains.
        host: HostFacts { nets: args.nets.clone(), ignore_nft: true, ..args.host.facts() },
        ..WalkOptions::default()
    };
    let is_folder = |name: &&&String| HostFolder::at(name).is_some();
    let of = [&args.old, &args.new].iter().find(is_folder).map_or("", |name| name);
    Ok(options.setup(of, Mode::Midstream)?)
}

fn given(args: &DiffArgs, Setup { config, start }: &Setup) -> Given {
    Given {
        host: config.host.clone(),
        sets: start.sets.clone(),
        input: config.input.clone(),
        output: config.output.clone(),
        way: match args.path {
            Some(PathChoice::Input) => Some(Hook::Input),
            Some(PathChoice::Forward) => Some(Hook::Forward),
            Some(PathChoice::Output) => Some(Hook::Output),
            Some(PathChoice::Auto) | None => None,
        },
    }
}

fn open(args: &DiffArgs, rules: &str) -> Result<RulesFile> {
    let options =
        LoadOptions { family: args.family, table: args.table.as_deref(), ..LoadOptions::default() };
    let file = match HostFolder::at(rules) {
        Some(folder) => folder.rules_of_iptables(&options)?.into_iter().next(),
        None => Some(RulesFile::open(rules, &options)?),
    };
    match file {
        Some(file) if file.ruleset.family.is_ip() => Ok(file),
        _ => bail!("{rules}: expected rules of iptables or ip6tables"),
    }
}
