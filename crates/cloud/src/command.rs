//! [`run`]: the commands of `tamis-cloud`.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, Parser, Subcommand};
use overlay::Name;
use packet::visible;
use pktio::file::{NamedBy, read_text};
use serde_json::Value;
use tunnel::PublicKey;

use crate::config::{self, Settings};
use crate::control::{self, NewPolicy, Request};
use crate::policy::Written;
use crate::{service, trs};

/// The configuration that commands speak to where none is given.
const CONFIG: &str = "/etc/tamis/cloud.toml";
/// The configuration of a relay where none is given.
const TRS: &str = "/etc/tamis/trs.toml";

/// The servers of an overlay with names: enrolment, directory and relay
#[derive(Debug, Parser)]
#[command(
    name = "tamis-cloud",
    version,
    after_help = "\
Exit codes: 0 done, 1 it failed, 2 usage or input error, or the cloud refuses.
Begin with: tamis-cloud all /etc/tamis/cloud.toml --init --public 203.0.113.1:51900"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run all servers, until SIGTERM or Ctrl-C; SIGHUP makes them read groups and what is allowed again
    All(AllArgs),
    /// Run the directory and enrolment, with a relay on a host of its own, until SIGTERM or Ctrl-C
    #[command(after_help = "\
Begin with: tamis-cloud nms /etc/tamis/cloud.toml --init --public 203.0.113.1:51900, which says what the relay's host needs")]
    Nms(AllArgs),
    /// Run a relay alone, for a directory on another host, until SIGTERM or Ctrl-C
    #[command(after_help = "\
Begin with what tamis-cloud nms --init prints.")]
    Trs(TrsArgs),
    /// Make one-time keys, and print the command by which each device joins
    Enrol {
        /// Names of nodes
        #[arg(required = true)]
        names: Vec<Name>,
        #[command(flatten)]
        of: Of,
    },
    /// List the nodes, and what the relay has done
    Devices {
        /// Print one JSON document, schema tamis.cloud-devices/1
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        of: Of,
    },
    /// Take a node out of the network: its peers forget it at once
    Revoke {
        /// The node's name
        name: Name,
        #[command(flatten)]
        of: Of,
    },
    /// Print the policy in force, or put the policy of a file in force
    #[command(after_help = "\
What is printed begins with its version: edit it and give it back, and it is refused if another one is in force by then.
A policy whose [[test]] fails is refused, and nothing changes.
Example: tamis-cloud policy > policy.toml && editor policy.toml && tamis-cloud policy policy.toml")]
    Policy {
        /// Groups, `[[allow]]` and `[[test]]`, in TOML (docs/cloud.md)
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// The version that has to be in force; by default the version that the file names, or that is in force now
        #[arg(long, value_name = "N", requires = "file")]
        version: Option<u64>,
        #[command(flatten)]
        of: Of,
    },
    /// Print what has happened, the last line last
    Log {
        #[command(flatten)]
        of: Of,
    },
}

/// Which cloud.
#[derive(Debug, Args)]
struct Of {
    /// The configuration of the running cloud
    #[arg(long, value_name = "CONFIG", default_value = CONFIG)]
    config: PathBuf,
}

/// `tamis-cloud all` and `tamis-cloud nms`.
#[derive(Debug, Args)]
struct AllArgs {
    /// The configuration, in TOML (docs/cloud.md)
    #[arg(value_name = "CONFIG", default_value = CONFIG)]
    config: PathBuf,
    /// Write a configuration and its keys, nothing over what is there, and end
    #[arg(long, requires = "public")]
    init: bool,
    /// The address and UDP port at which nodes reach this host
    #[arg(long, value_name = "ADDRESS:PORT", requires = "init")]
    public: Option<SocketAddr>,
    /// The domain that names of nodes are below
    #[arg(long, default_value = "tamis.internal", requires = "init")]
    domain: String,
}

/// `tamis-cloud trs`.
#[derive(Debug, Args)]
struct TrsArgs {
    /// The configuration, in TOML (docs/cloud.md)
    #[arg(value_name = "CONFIG", default_value = TRS)]
    config: PathBuf,
    /// Write a configuration and its key, nothing over what is there, and end
    #[arg(long, requires_all = ["public", "nms", "key"])]
    init: bool,
    /// The address at which nodes reach this host
    #[arg(long, value_name = "ADDRESS", requires = "init")]
    public: Option<IpAddr>,
    /// Where the directory is
    #[arg(long, value_name = "ADDRESS:PORT", requires = "init")]
    nms: Option<SocketAddr>,
    /// The directory's public key
    #[arg(long, value_name = "KEY", requires = "init")]
    key: Option<PublicKey>,
}

/// Carries a command out.
pub(crate) fn run() -> Result<ExitCode> {
    match Cli::parse().command {
        Command::All(args) => all(&args, false),
        Command::Nms(args) => all(&args, true),
        Command::Trs(args) => relay(&args),
        Command::Enrol { names, of } => enrol(names, &of.config),
        Command::Devices { json, of } => devices(json, &of.config),
        Command::Revoke { name, of } => {
            asked(&of.config, &Request::Revoke { name: name.to_string() })?;
            println!("revoked {name}");
            Ok(ExitCode::SUCCESS)
        }
        Command::Policy { file, version, of } => policy(file.as_deref(), version, &of.config),
        Command::Log { of } => {
            let answer = asked(&of.config, &Request::Log {})?;
            let lines = answer["lines"].as_array().into_iter().flatten();
            lines.filter_map(Value::as_str).for_each(|line| println!("{}", visible::word(line)));
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Runs all servers, or those but the relay.
fn all(args: &AllArgs, is_apart: bool) -> Result<ExitCode> {
    let (true, Some(public)) = (args.init, args.public) else {
        return service::run(&args.config, is_apart);
    };
    let key = config::init(&args.config, public, &args.domain)?;
    let shown = args.config.display();
    println!("wrote {shown}, and keys beside it");
    match is_apart {
        false => println!("next: tamis-cloud all {shown}"),
        true => println!("{}\nthen: tamis-cloud nms {shown}", service::relay_wanted(public, &key)),
    }
    Ok(ExitCode::SUCCESS)
}

fn relay(args: &TrsArgs) -> Result<ExitCode> {
    let (Some(public), Some(nms), Some(key)) = (args.public, args.nms, args.key) else {
        return trs::run(&args.config);
    };
    let own = trs::init(&args.config, public, (nms, key))?;
    let shown = args.config.display();
    println!(
        "# wrote {shown}, and a key beside it; next: tamis-cloud trs {shown}\n\
         # the configuration of the directory needs:\n\
         [relay]\npublic = \"{public}\"\nkey = \"{own}\""
    );
    Ok(ExitCode::SUCCESS)
}

/// What the running cloud answers.
fn asked(config: &Path, request: &Request) -> Result<Value> {
    let settings = Settings::read(config)?;
    let answer = control::ask(&settings.control(), request)?;
    match answer["error"].as_str() {
        Some(why) => bail!("{}", visible::word(why)),
        None => Ok(answer),
    }
}

fn policy(file: Option<&Path>, version: Option<u64>, config: &Path) -> Result<ExitCode> {
    let in_force = || asked(config, &Request::Policy(NewPolicy::default()));
    let Some(file) = file else {
        let answer = in_force()?;
        let text = visible::text(answer["text"].as_str().unwrap_or_default());
        print!("version = {}\n{text}", answer["version"]);
        return Ok(ExitCode::SUCCESS);
    };
    let name = file.display().to_string();
    let text = read_text(file, NamedBy::Configuration).with_context(|| name.clone())?;
    let written = Written::read(&text).map_err(|wrong| anyhow!(wrong.placed(&name, &text)))?;
    let version = match version.or(written.version) {
        Some(version) => version,
        None => in_force()?["version"].as_u64().unwrap_or_default(),
    };
    let new = NewPolicy { text: Some(text), name, version: Some(version), uid: 0 };
    let answer = asked(config, &Request::Policy(new))?;
    let changed = visible::word(answer["changed"].as_str().unwrap_or_default()).into_owned();
    println!("version {} is in force: {changed}", answer["version"]);
    Ok(ExitCode::SUCCESS)
}

fn enrol(names: Vec<Name>, config: &Path) -> Result<ExitCode> {
    let names = names.iter().map(ToString::to_string).collect();
    let answer = asked(config, &Request::Enrol { names })?;
    let url = answer["url"].as_str().unwrap_or_default();
    for key in answer["keys"].as_array().into_iter().flatten() {
        let [name, key] = ["name", "key"].map(|it| key[it].as_str().unwrap_or_default());
        println!("# {name}, within a day, and once:\ntamis tunnel join {url} {key}");
    }
    Ok(ExitCode::SUCCESS)
}

fn devices(json: bool, config: &Path) -> Result<ExitCode> {
    let answer = asked(config, &Request::Devices {})?;
    if json {
        println!("{answer:#}");
        return Ok(ExitCode::SUCCESS);
    }
    println!("{:<20} {:<16} {:<28} state", "name", "IPv4", "IPv6");
    for device in answer["devices"].as_array().into_iter().flatten() {
        let word = |key: &str| visible::word(device[key].as_str().unwrap_or_default()).into_owned();
        println!("{:<20} {:<16} {:<28} {}", word("name"), word("v4"), word("v6"), word("state"));
    }
    let (forwarded, dropped) = (&answer["relay"]["forwarded"], &answer["relay"]["dropped"]);
    let state = if answer["relay"]["state"] == "absent" { ", and is not there" } else { "" };
    println!("relay: {forwarded} datagrams forwarded, {dropped} dropped{state}");
    Ok(ExitCode::SUCCESS)
}
