//! `tamis tunnel why`: whether a node and this one may begin something with each other, and by which line of the network's
//! policy; by which way it is reached, and why by no better one; or why there is no way to it.
//!
//! Contract: it asks what programs and packets meet: this node's own server of names, and the rules in force.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use conntrack::Mode;
use dataplane::Config;
use live::Request;
use live::answers::{Peer, Peers, Snapshot};
use live::config::tunnel::HOST;
use overlay::{Protocol, Service};
use packet::visible;
use replay::RulesFile;
use replay::walk::Setup;
use replay::{shell, spec, why};
use rules::ipset::Sets;
use rules::model::Family;
use rules::save::LoadOptions;
use serde_json::{Value, json};

use super::ask::answer;
use super::names::{self, COMMENT, Told};
use super::{place, reach};
use crate::screen;

/// `tamis tunnel why`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 this host may begin it, or may reach PEER, 1 it may not, 2 usage error, or the tunnel is not up.
Examples:
  tamis tunnel why nas tcp/22
  tamis tunnel why nas")]
pub(crate) struct WhyArgs {
    /// A node's name, with the domain or without
    #[arg(value_name = "PEER")]
    pub peer: String,
    /// What is to begin: tcp/22, udp/53, icmp; all lines of the policy about the two where nothing is said
    #[arg(value_name = "PORT")]
    pub service: Option<Service>,
    /// The tunnel's name, or its configuration; by default the only tunnel that is up
    #[arg(long, value_name = "NAME|CONFIG")]
    pub tunnel: Option<String>,
    /// Print one JSON document, schema tamis.tunnel_why/1
    #[arg(long)]
    pub json: bool,
}

/// Two nodes, as rules and people name them.
pub(super) struct Pair {
    /// The tunnel's name.
    tunnel: String,
    pub(super) own: (String, Ipv4Addr),
    pub(super) peer: (String, Ipv4Addr),
}

/// Says why.
pub(crate) fn run(args: &WhyArgs) -> Result<ExitCode> {
    if let Some(service) = args.service.filter(|it| it.protocol != Protocol::Icmp)
        && service.ports.0 != service.ports.1
    {
        bail!("expected one port, such as tcp/22, found {service}");
    }
    let control = control(args.tunnel.as_deref())?;
    let pair = match pair(&args.peer, &control)? {
        Ok(pair) => pair,
        Err(what) => {
            told(args, json!({ "why": [what] }), &format!("{what}\n"))?;
            return Ok(ExitCode::from(1));
        }
    };
    let snapshot: Snapshot = answer(&control, &Request::Snapshot {})?;
    let rules = Rules::of(&snapshot)?;
    let way = Way::of(&pair, &control)?;
    let (text, may) = match args.service {
        None => (rules.about(&pair) + &way.text(), true),
        Some(service) => {
            let (out, may) = rules.told(&pair, service, true)?;
            let (back, _) = rules.told(&pair, service, false)?;
            let socket =
                ["--socket", &control.to_string_lossy(), "snapshot", "DIR"].map(str::to_owned);
            let next = shell::command("ctl", &socket.each_ref().map(String::as_str), "");
            let packet = packet(&pair, service, true);
            (format!("{out}{back}next: {next} && tamis why DIR --packet '{packet}'\n"), may)
        }
    };
    let document = json!({
        "address": pair.peer.1,
        "may": args.service.map(|_| may),
        "rules": rules.of_peer(&pair),
        "path": way.peer,
        "why": way.lines,
    });
    told(args, document, &text)?;
    Ok(ExitCode::from(u8::from(!may)))
}

/// Prints a document, or text.
fn told(args: &WhyArgs, mut document: Value, text: &str) -> Result<()> {
    if !args.json {
        return screen::print(&visible::text(text));
    }
    document["schema"] = "tamis.tunnel_why/1".into();
    document["peer"] = args.peer.as_str().into();
    screen::json(&document)
}

/// How a node is reached.
struct Way {
    peer: Option<Peer>,
    lines: Vec<String>,
}

impl Way {
    fn of(pair: &Pair, control: &Path) -> Result<Self> {
        let Peers { peers } = answer(control, &Request::Peers {})?;
        let address = format!("{}/32", pair.peer.1);
        let peer = peers.into_iter().find(|peer| peer.allowed.contains(&address));
        let names = [&*pair.own.0, &*pair.peer.0];
        let lines = peer.iter().flat_map(|peer| reach::lines(peer, names)).collect();
        Ok(Self { peer, lines })
    }

    fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// The control socket of the tunnel that is meant.
pub(super) fn control(which: Option<&str>) -> Result<std::path::PathBuf> {
    match which {
        Some(which) => place::control(which),
        None => match <[_; 1]>::try_from(place::all()) {
            Ok([only]) => Ok(only),
            Err(all) if all.is_empty() => bail!("no tunnel is up: tamis tunnel up CONFIG"),
            Err(_) => bail!("several tunnels are up: expected --tunnel NAME"),
        },
    }
}

/// This node and the other one; or why there is no way to it.
pub(super) fn pair(peer: &str, control: &Path) -> Result<Result<Pair, String>> {
    let Peers { peers } = answer(control, &Request::Peers {})?;
    let mut addresses = peers.iter().flat_map(|peer| &peer.allowed);
    let cloud = addresses.find_map(|prefix| prefix.strip_suffix("/32")?.parse::<Ipv4Addr>().ok());
    let first = peers.first().zip(cloud).context("the tunnel has no peers")?;
    let (tunnel, own) = (first.0.tunnel.clone(), source_to(first.1)?);
    let Some(Told::Name(full)) = names::own_name(own) else {
        bail!(
            "{tunnel} is no node of a network with names: tamis ctl snapshot, and tamis why, say what its rules do"
        );
    };
    let full = full.trim_end_matches('.');
    let (name, domain) = full.split_once('.').unwrap_or((full, ""));
    let short = peer.trim_end_matches('.').to_ascii_lowercase();
    let short = short.strip_suffix(&format!(".{domain}")).unwrap_or(&short).to_owned();
    let no_way = |what: &str| Ok(Err(format!("there is no way from {name} to {short}: {what}")));
    match names::address(own, &format!("{short}.{domain}")) {
        Some(Told::Address(address)) => {
            let (own, peer) = ((name.to_owned(), own), (short, address));
            Ok(Ok(Pair { tunnel, own, peer }))
        }
        Some(Told::Failure(what)) => no_way(&what),
        Some(Told::NoSuchName) => no_way(&format!(
            "no node has the name, or no line of the policy is about it and {name}"
        )),
        _ => no_way("this node's own server of names does not answer"),
    }
}

/// The address that this host has for another one inside the tunnel.
fn source_to(address: Ipv4Addr) -> Result<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).context("UDP")?;
    socket.connect((address, 1)).with_context(|| address.to_string())?;
    match socket.local_addr().context("UDP")?.ip() {
        IpAddr::V4(own) => Ok(own),
        IpAddr::V6(own) => bail!("expected an IPv4 address, found {own}"),
    }
}

/// The rules in force, to be asked.
struct Rules {
    files: Vec<RulesFile>,
    setup: Setup,
}

impl Rules {
    fn of(snapshot: &Snapshot) -> Result<Self> {
        let text = |name: &str| snapshot.files.get(name);
        let options = LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() };
        let file = text("iptables.save").context("the run has no rules of IPv4")?;
        let files = vec![RulesFile::from_text("iptables.save", file.clone(), &options)?];
        let ct = conntrack::Config { mode: Mode::Kernel, ..conntrack::Config::default() };
        let mut setup = Setup::from(Config { ct, ..Config::default() });
        setup.start.sets = text("ipset.save").map(|text| Sets::parse(text)).transpose()?;
        let bans = text("bans.txt").map(|text| dataplane::bans_text::parse("bans.txt", text));
        setup.start.bans = bans.transpose().map_err(|error| anyhow::anyhow!("bans.txt:{error}"))?;
        Ok(Self { files, setup })
    }

    /// The rules about a peer.
    fn about(&self, pair: &Pair) -> String {
        let (name, address) = &pair.peer;
        let rules = self.of_peer(pair).into_iter().map(|rule| format!("  {rule}\n"));
        let rules: String = rules.collect();
        format!("{name} is {address}; what it and {} may begin:\n{rules}", pair.own.0)
    }

    fn of_peer(&self, pair: &Pair) -> Vec<String> {
        let chain = names::chain(pair.peer.1);
        let rules = self.files.iter().flat_map(|file| {
            let of_peer = file.rules().filter(|(_, _, of, _)| *of.name == *chain);
            of_peer.map(|(at, ..)| file.rule_text(at).to_string())
        });
        rules.collect()
    }

    /// Whether something may begin, by which line; `outward` from this host.
    fn told(&self, pair: &Pair, service: Service, outward: bool) -> Result<(String, bool)> {
        let packet = packet(pair, service, outward);
        let spec = spec::parse(&packet).map_err(|error| anyhow::anyhow!("{packet}: {error}"))?;
        let story = why::of_conversation(&self.files, &self.setup, &[], &spec, None).json();
        let (own, peer) = (&pair.own.0, &pair.peer.0);
        let (from, to) = if outward { (own, peer) } else { (peer, own) };
        let verdict = story["verdict"].as_str().unwrap_or_default();
        let by = story["by"].as_str().unwrap_or_default();
        let line = of_policy(&story);
        let is_policys = by.contains(&format!("\"{COMMENT}"));
        let what = match (verdict, line) {
            ("accept", Some(line)) => format!("accepted, by {line}"),
            ("drop", Some(line)) if is_policys => {
                let version =
                    line.trim_start_matches(COMMENT).split(':').next().unwrap_or_default();
                format!(
                    "no line of the policy lets {from} reach {to} at {service}; version {version}"
                )
            }
            (verdict, _) => format!("{verdict}, by {by}: the tunnel's own rules"),
        };
        Ok((format!("{from} -> {to} {service}: {what}\n"), verdict == "accept"))
    }
}

/// The first packet of something.
fn packet(pair: &Pair, service: Service, outward: bool) -> String {
    let (own, peer, tunnel) = (pair.own.1, pair.peer.1, &pair.tunnel);
    let (from, to, ports) = match outward {
        true => (own, peer, format!("in={HOST} out={tunnel}")),
        false => (peer, own, format!("in={tunnel} out={HOST}")),
    };
    let port = service.ports.0;
    match service.protocol {
        Protocol::Icmp => format!("{ports} path=forward icmp {from} > {to} echo-request"),
        Protocol::Udp => format!("{ports} path=forward udp {from}:40000 > {to}:{port}"),
        Protocol::Tcp => format!("{ports} path=forward tcp {from}:40000 > {to}:{port} syn"),
    }
}

/// The comment of the last rule of the policy that a packet met: what decided there.
fn of_policy(story: &Value) -> Option<String> {
    let steps = story["steps"].as_array()?.iter().rev();
    steps.filter_map(|step| comment(step["text"].as_str()?)).next()
}

fn comment(rule: &str) -> Option<String> {
    let (_, rest) = rule.split_once(&format!("--comment \"{COMMENT}"))?;
    let (text, _) = rest.split_once('"')?;
    Some(format!("{COMMENT}{text}"))
}
