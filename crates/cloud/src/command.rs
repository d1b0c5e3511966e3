//! [`run`]: the commands of `tamis-cloud`.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, Parser, Subcommand, ValueEnum};
use overlay::Name;
use packet::visible;
use pktio::file::{NamedBy, read_text};
use serde_json::Value;
use tunnel::PublicKey;

use crate::config::{self, Settings};
use crate::control::{self, NewPolicy, Request};
use crate::policy::Written;
use crate::{authority, paths, service, trs};

/// The configuration that commands speak to where none is given.
const CONFIG: &str = "/etc/tamis/cloud.toml";
/// The configuration of an authority where none is given.
const AS: &str = "/etc/tamis/as.toml";
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
    /// Run the directory, with the authority, the relay or both on hosts of their own, until SIGTERM or Ctrl-C
    #[command(after_help = "\
Begin with: tamis-cloud nms /etc/tamis/cloud.toml --init --public 203.0.113.1:51900 --apart as trs, which says what the other hosts need")]
    Nms(NmsArgs),
    /// Run an authority alone, which enrols devices and signs what they are, until SIGTERM or Ctrl-C
    #[command(after_help = "\
Begin with what tamis-cloud nms --init --apart as prints.")]
    As(AsArgs),
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
    /// List the paths of the relay by their bytes, the 1,000 with the most
    Paths {
        /// Print one JSON document, schema tamis.cloud-paths/1
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
    /// The configuration of the running server [default: /etc/tamis/cloud.toml, or /etc/tamis/as.toml]
    #[arg(long, value_name = "CONFIG")]
    config: Option<PathBuf>,
}

/// `tamis-cloud all`.
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

/// `tamis-cloud nms`.
#[derive(Debug, Args)]
struct NmsArgs {
    #[command(flatten)]
    all: AllArgs,
    /// The servers that are to be on hosts of their own
    #[arg(long, value_enum, num_args = 1.., default_value = "trs", requires = "init")]
    apart: Vec<Apart>,
}

/// A server that may be on a host of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Apart {
    /// The authority.
    As,
    /// The relay.
    Trs,
}

/// `tamis-cloud as`.
#[derive(Debug, Args)]
struct AsArgs {
    /// The configuration, in TOML (docs/cloud.md)
    #[arg(value_name = "CONFIG", default_value = AS)]
    config: PathBuf,
    /// Write a configuration and its keys, nothing over what is there, and end
    #[arg(long, requires_all = ["public", "nms", "key", "domain", "v4", "v6"])]
    init: bool,
    /// The address and UDP port at which devices and nodes reach this host
    #[arg(long, value_name = "ADDRESS:PORT", requires = "init")]
    public: Option<SocketAddr>,
    /// Where the directory is
    #[arg(long, value_name = "ADDRESS:PORT", requires = "init")]
    nms: Option<SocketAddr>,
    /// The directory's public key
    #[arg(long, value_name = "KEY", requires = "init")]
    key: Option<PublicKey>,
    /// The domain of the directory
    #[arg(long, requires = "init")]
    domain: Option<String>,
    /// The virtual IPv4 addresses of the directory
    #[arg(long, value_name = "PREFIX", requires = "init")]
    v4: Option<String>,
    /// The virtual IPv6 addresses of the directory
    #[arg(long, value_name = "PREFIX", requires = "init")]
    v6: Option<String>,
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
        Command::All(args) => all(&args),
        Command::Nms(args) => nms(&args),
        Command::As(args) => signing(&args),
        Command::Trs(args) => relay(&args),
        Command::Enrol { names, of } => enrol(names, &of.of([AS, CONFIG])),
        Command::Devices { json, of } => devices(json, &of.of([CONFIG, AS])),
        Command::Paths { json, of } => {
            let answer = asked(&of.of([TRS, CONFIG]), &Request::Paths {})?;
            if json {
                println!("{answer:#}")
            } else {
                paths::print(&answer)
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Revoke { name, of } => {
            asked(&of.of([AS, CONFIG]), &Request::Revoke { name: name.to_string() })?;
            println!("revoked {name}");
            Ok(ExitCode::SUCCESS)
        }
        Command::Policy { file, version, of } => {
            policy(file.as_deref(), version, &of.of([CONFIG, AS]))
        }
        Command::Log { of } => log(&of),
    }
}

impl Of {
    /// The configuration that is given, or else the first of these that is there.
    fn of(&self, usual: [&str; 2]) -> PathBuf {
        let found = || usual.into_iter().map(PathBuf::from).find(|path| path.exists());
        self.config.clone().or_else(found).unwrap_or_else(|| CONFIG.into())
    }
}

/// Runs all servers.
fn all(args: &AllArgs) -> Result<ExitCode> {
    let (true, Some(public)) = (args.init, args.public) else {
        return service::run(&args.config, false);
    };
    config::init(&args.config, public, &args.domain, true)?;
    let shown = args.config.display();
    println!("wrote {shown}, and keys beside it\nnext: tamis-cloud all {shown}");
    Ok(ExitCode::SUCCESS)
}

/// Runs the directory, and the servers that are not on hosts of their own.
fn nms(args: &NmsArgs) -> Result<ExitCode> {
    let NmsArgs { all: args, apart } = args;
    let (true, Some(public)) = (args.init, args.public) else {
        return service::run(&args.config, true);
    };
    let signs = !apart.contains(&Apart::As);
    let key = config::init(&args.config, public, &args.domain, signs)?;
    let shown = args.config.display();
    println!("wrote {shown}, and keys beside it");
    if !signs {
        println!("{}", service::authority_wanted(&Settings::read(&args.config)?, &key));
    }
    if apart.contains(&Apart::Trs) {
        println!("{}", service::relay_wanted(public, &key));
    }
    println!("then: tamis-cloud nms {shown}");
    Ok(ExitCode::SUCCESS)
}

/// Runs an authority.
fn signing(args: &AsArgs) -> Result<ExitCode> {
    let (Some(public), Some(nms), Some(key)) = (args.public, args.nms, args.key) else {
        return authority::run(&args.config);
    };
    let [domain, v4, v6] =
        [&args.domain, &args.v4, &args.v6].map(|it| it.clone().unwrap_or_default());
    let first = authority::First { public, nms: (nms, key), domain, v4, v6 };
    let (own, signer) = authority::init(&args.config, &first)?;
    let shown = args.config.display();
    println!(
        "# wrote {shown}, and keys beside it; next: tamis-cloud as {shown}\n\
         # the configuration of the directory needs:\n\
         [as]\nkey = \"{own}\"\nsigner = \"{signer}\""
    );
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
         [[relay]]\npublic = \"{public}\"\nkey = \"{own}\""
    );
    Ok(ExitCode::SUCCESS)
}

/// The control socket of the server that a configuration is of.
fn socket(config: &Path) -> Result<PathBuf> {
    let shown = || config.display().to_string();
    let text = read_text(config, NamedBy::Configuration).with_context(shown)?;
    let tables = toml::from_str::<toml::Table>(&text).unwrap_or_default();
    let has = |table: &str| tables.contains_key(table);
    match (has("nms"), has("as")) {
        (true, true) => Ok(authority::Settings::read(config)?.control()),
        (true, false) => Ok(trs::Settings::read(config)?.control()),
        (false, _) => Ok(Settings::read(config)?.control()),
    }
}

/// Prints the log of a server, or of all that have their usual configuration here, by time.
fn log(of: &Of) -> Result<ExitCode> {
    let both = [CONFIG, AS].map(PathBuf::from).into_iter().filter(|path| path.exists());
    let configs = match &of.config {
        Some(config) => vec![config.clone()],
        None => both.collect(),
    };
    let mut lines = Vec::new();
    for config in if configs.is_empty() { vec![CONFIG.into()] } else { configs } {
        let answer = asked(&config, &Request::Log {})?;
        let said = answer["lines"].as_array().into_iter().flatten().filter_map(Value::as_str);
        lines.extend(said.map(str::to_owned));
    }
    // Each begins with its time.
    lines.sort_by(|one, other| one.split(' ').next().cmp(&other.split(' ').next()));
    lines.iter().for_each(|line| println!("{}", visible::word(line)));
    Ok(ExitCode::SUCCESS)
}

/// What the running server answers.
fn asked(config: &Path, request: &Request) -> Result<Value> {
    let answer = control::ask(&socket(config)?, request)?;
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
    let tcp = answer["tcp"].as_u64().map_or_else(String::new, |port| format!(" --tcp {port}"));
    for key in answer["keys"].as_array().into_iter().flatten() {
        let [name, key] = ["name", "key"].map(|it| key[it].as_str().unwrap_or_default());
        println!("# {name}, within a day, and once:\ntamis tunnel join {url} {key}{tcp}");
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
    let is_absent = |server: &str| answer[server]["state"] == "absent";
    for relay in answer["relays"].as_array().into_iter().flatten() {
        let at = visible::word(relay["at"].as_str().unwrap_or_default()).into_owned();
        let (forwarded, dropped) = (&relay["forwarded"], &relay["dropped"]);
        let state = if relay["state"] == "absent" { ", and is not there" } else { "" };
        println!("relay {at}: {forwarded} datagrams forwarded, {dropped} dropped{state}");
    }
    for server in ["authority", "directory"].into_iter().filter(|server| is_absent(server)) {
        println!("{server}: it is not there");
    }
    Ok(ExitCode::SUCCESS)
}
