//! `tamis reach`.

use std::fs::File;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use dataplane::{Config, Path};
use host::Network;
use lint::{Asked, Judged, Question, Reach, Reached, States, To, reach};
use replay::cases::record::{Written, written};
use replay::walk::{Setup, WalkOptions, words};
use replay::why::Singles;
use replay::{RulesFile, json_text, shell, spec};
use rules::TableKind;
use rules::ipset::Sets;
use rules::model::{Hook, Ruleset};

use crate::screen;
use crate::standard_input::standard_input_once;
use crate::test_command::below;
use crate::walk_args::{WalkArgs, warn_of_foreign};

/// Exit code where nothing reaches.
const NOTHING: u8 = 1;
/// Exit code where something may.
const PERHAPS: u8 = 4;

/// `tamis reach`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Packets are told as they come in; what gives them another destination on their way is followed: --to takes the address
that a service has behind DNAT, and the one that outsiders use. What opens a connection is told apart from what is part
of one. \"perhaps\": it depends on what is not known, or on other packets; the lines say what to give.
Each region has a packet that was walked all the way. Packets that end inside a header are left out.
Exit codes: 0 something reaches, 1 nothing does, 2 usage or input error, 4 not known.
Examples:
  tamis reach rules.v4 --to 10.0.0.5:80/tcp
  tamis reach rules.v4 --to 10.0.0.0/24 --from 192.0.2.0/24 --local 198.51.100.1
  tamis reach host/ --from 10.20.0.0/16 --json
  tamis reach rules.v4 --to 10.0.0.5:22/tcp --record cases.toml")]
pub(crate) struct ReachArgs {
    /// Rules of iptables or ip6tables, - for standard input; or a folder that `tamis collect` wrote
    #[arg(value_name = "RULES|HOST")]
    pub rules: String,
    /// Where packets are to arrive: ADDRESS[/BITS][:PORT[-PORT]][/PROTOCOL]; IPv6 with a port in brackets
    #[arg(long, value_name = "ADDR[:PORT][/PROTO]", value_parser = To::parse)]
    #[arg(required_unless_present = "from")]
    pub to: Option<To>,
    /// Where they come from
    #[arg(long, value_name = "NET", value_parser = words::network)]
    pub from: Option<Network>,
    /// Write a cases file for `tamis test` from the packets that are shown, a file that is not there yet
    #[arg(long, value_name = "CASES.toml")]
    pub record: Option<String>,
    /// How many rules that let packets through to show of each way
    #[arg(long, default_value_t = 6, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub limit: u16,
    /// Print JSON (tamis.reach/1)
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub walk: WalkArgs,
}

/// Asks.
pub(crate) fn run(args: &ReachArgs) -> Result<ExitCode> {
    standard_input_once([&args.rules].into_iter().chain(&args.walk.rules6))?;
    let walk = WalkOptions { legacy_apart: true, ..args.walk.options() };
    let files = walk.open(&args.rules)?;
    if files.iter().any(|file| file.listing.is_some()) {
        bail!(
            "{}: expected rules of iptables, found rules of nft, which reach does not know yet",
            args.rules
        );
    }
    let setup = walk.setup(&args.rules, spec::CT)?;
    let config = &setup.config;
    warn_of_foreign(&config.host.foreign);
    let question = question(args, &setup)?;
    let file = of_family(&files, &question, args)?;
    let singles = Singles::of(&files, &setup);
    let standing = Singles::of(&without_nat(&files), &setup);
    let found = reach(&file.ruleset, &question, &mut |states: States, packet: &str| match states {
        // An example is one of which `why` says the same, which has all tables.
        States::Established => {
            let found = judged(&standing, packet);
            Judged { differs: judged(&singles, packet).verdict != found.verdict, ..found }
        }
        States::New | States::Any => judged(&singles, packet),
    });
    let why = |packet: &str| {
        let options = walk.also() + &singles.flags() + &shell::option("packet", packet);
        shell::command("why", &[&args.rules], &options)
    };
    let asked =
        Asked { file: &file.file, question: &question, limit: args.limit.into(), why: &why };
    if let Some(name) = &args.record {
        // A case is walked with all tables.
        let holds = |packet: &str, as_judged: &Judged| judged(&singles, packet) == *as_judged;
        record(args, config, &found, name, holds)?;
    }
    screen::write(|out| {
        if args.json {
            return json_text::pretty(out, &found.json(&asked));
        }
        out.write_all(screen::data(&found.text(&asked)).as_bytes())
    })?;
    if let Some(name) = args.record.as_ref().filter(|_| !args.json) {
        screen::print(&format!("next: {}\n", test_command(args, name)))?;
    }
    Ok(match found.reached() {
        Reached::Yes => ExitCode::SUCCESS,
        Reached::No => ExitCode::from(NOTHING),
        Reached::Perhaps => ExitCode::from(PERHAPS),
    })
}

fn question(args: &ReachArgs, Setup { config, start }: &Setup) -> Result<Question> {
    let (to, from) = (args.to, args.from);
    if let (Some(to), Some(from)) = (to, from)
        && to.network.addr.is_ipv4() != from.addr.is_ipv4()
    {
        bail!("--to {to} --from {from}: expected addresses of one family");
    }
    let way = match config.path {
        Some(Path::Input) => Some(Hook::Input),
        Some(Path::Forward) => Some(Hook::Forward),
        Some(Path::Output) => Some(Hook::Output),
        Some(Path::Loopback) | None => None,
    };
    let question = Question {
        to,
        from,
        input: config.input.clone(),
        output: config.output.clone(),
        nets: config.nets.clone(),
        way,
        sets: start.sets.as_ref().map(Sets::copied),
        ..Question::default()
    };
    Ok(question.of_host(&config.host))
}

/// The rules for the addresses that are asked about.
fn of_family<'f>(
    files: &'f [RulesFile],
    question: &Question,
    args: &ReachArgs,
) -> Result<&'f RulesFile> {
    let found = files.iter().find(|file| Some(file.ruleset.family) == question.family());
    match (found, question.to) {
        (Some(file), _) => Ok(file),
        (None, Some(to)) => bail!("{}: expected rules for the family of --to {to}", args.rules),
        (None, None) => bail!("{}: expected rules for the family of --from", args.rules),
    }
}

/// The rules that packets of connections that stand meet again.
fn without_nat(files: &[RulesFile]) -> Vec<RulesFile> {
    let mut files = files.to_vec();
    for file in &mut files {
        let Ruleset { family, backend, tables } = &*file.ruleset;
        let tables = tables.iter().filter(|table| table.name != TableKind::NAT).cloned().collect();
        file.ruleset = Arc::new(Ruleset { family: *family, backend: *backend, tables });
    }
    files
}

fn judged(singles: &Singles, packet: &str) -> Judged {
    match singles.ask(packet) {
        Ok(single) => Judged {
            verdict: single.verdict.to_owned(),
            by: single.by,
            place: single.place.map(|place| place.to_string()),
            because: single.because,
            differs: false,
        },
        Err(error) => Judged {
            verdict: "unknown".to_owned(),
            because: vec![error.to_string()],
            ..Judged::default()
        },
    }
}

/// Writes a case for each packet whose verdict is known.
fn record(
    args: &ReachArgs,
    config: &Config,
    found: &Reach,
    name: &str,
    holds: impl Fn(&str, &Judged) -> bool,
) -> Result<()> {
    let asked = |to: Option<String>, word: &str| to.map(|to| format!(" {word} {to}"));
    let to = asked(args.to.map(|to| to.to_string()), "to");
    let from = asked(args.from.map(|from| from.to_string()), "from");
    let asked = [to, from].into_iter().flatten().collect::<String>();
    let named = |states: States, way: Hook| match states {
        States::Established => format!("{}, ESTABLISHED", way.chain_name()),
        States::New | States::Any => way.chain_name().to_owned(),
    };
    let open = found.regions.iter().filter_map(|region| {
        let piece = format!("{}: {}", named(region.states, region.way), region.piece);
        Some((piece, region.witness.as_ref()?))
    });
    let closed = found.closed.iter().filter_map(|closed| {
        Some((format!("{}: nothing", named(closed.states, closed.way)), closed.probe.as_ref()?))
    });
    let known = open
        .chain(closed)
        .filter(|(_, (packet, judged))| judged.verdict != "unknown" && holds(packet, judged));
    let cases: Vec<Written> = known
        .map(|(piece, (packet, judged))| Written {
            name: format!("reach{asked}: {piece}"),
            packet: packet.clone(),
            expect: judged.verdict.clone(),
            by: judged.place.clone(),
        })
        .collect();
    if cases.is_empty() {
        bail!("--record {name}: expected a packet whose verdict is known, found none");
    }
    let rules = [Some(&args.rules), args.walk.rules6.as_ref()]
        .map(|rules| below(Some(name), rules.filter(|rules| *rules != "-")?));
    let heading = format!("Recorded by tamis reach{asked}: {} cases.", cases.len());
    let toml = written(&heading, [rules[0].as_deref(), rules[1].as_deref()], config, &cases);
    // A cases file is edited by hand: none is ever overwritten.
    let mut file = File::create_new(name).with_context(|| name.to_owned())?;
    file.write_all(toml.as_bytes()).with_context(|| name.to_owned())
}

/// The command that tests the rules with the cases.
fn test_command(args: &ReachArgs, name: &str) -> String {
    let is_named = args.rules != "-" && below(Some(name), &args.rules).is_some();
    let operands: Vec<&str> =
        Some(&*args.rules).filter(|_| !is_named).into_iter().chain([name]).collect();
    shell::command("test", &operands, &args.walk.options().also())
}
