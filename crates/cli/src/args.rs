//! The command line. Stable: scripts rely on it.

use std::net::IpAddr;
use std::path::PathBuf;

pub(crate) use crate::bench_command::BenchArgs;
pub(crate) use crate::completions_command::CompletionsArgs;
pub(crate) use crate::convert_command::ConvertArgs;
pub(crate) use crate::lab_command::LabArgs;
pub(crate) use crate::man_command::ManArgs;
pub(crate) use crate::test_command::TestArgs;

use anyhow::{Context, anyhow, bail};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use dataplane::{Config, Path};
use packet::Checksums;
use replay::{Moment, RulesFile};
use rules::conntrack::{self, Mode, config::DEFAULT_MAX};
use rules::ipset::Sets;
use rules::model::Family;
use rules::routes::Routes;
use rules::save::LoadOptions;
use rules::{Network, Semantics, World};

/// What happens to this packet under these rules, and why?
#[derive(Debug, Parser)]
#[command(name = "tamis", version, max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show a replay of built-in rules and a built-in capture
    Demo(DemoArgs),
    /// What happened to every packet of a capture
    Replay(Box<ReplayArgs>),
    /// The whole path of one packet, rule by rule
    Why(Box<WhyArgs>),
    /// Hold rules to what a file of cases expects of them
    Test(Box<TestArgs>),
    /// Measure tamis, and its peers on the same work
    Bench(Box<BenchArgs>),
    /// The workload of the access-control studies
    Lab(LabArgs),
    /// Write rules of one family as those of another, or as JSON
    Convert(ConvertArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write all of them
    Man(ManArgs),
}

/// `tamis demo`.
#[derive(Debug, ClapArgs)]
pub(crate) struct DemoArgs {
    /// Where to write demo-report.html and the demonstration's rules and capture
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
}

/// `tamis replay`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Exit codes: 0 done, 2 usage or input error, 3 what --fail-on names is there, 130 stopped by Ctrl-C
(the report then says what there is so far).
Examples:
  tamis replay rules.v4 office.pcap
  tamis replay rules.v4 office.pcap --vs new.v4 --fail-on change
  tamis replay rules.v4 office.pcap --filter 'tcp port 443' --from +10 --to +20 --list drop
  tamis replay rules.v4 office.pcap --net eth0=0.0.0.0/0 --net eth1=10.0.0.0/8 --list drop")]
pub(crate) struct ReplayArgs {
    /// Rules, as iptables-save or its siblings (ip6tables, arptables, ebtables) print them; - for standard input
    pub rules: String,
    /// Captures (pcap or pcapng, plain, gzip or zstd), one stream in this order; - for standard input
    #[arg(required = true, value_name = "CAPTURE")]
    pub captures: Vec<String>,
    /// Show packets with this verdict, or whose verdict changes under --vs, each with what decided
    #[arg(long, value_name = "VERDICT", requires_if("change", "vs"))]
    pub list: Option<ListChoice>,
    /// How many packets --list shows
    #[arg(long, default_value_t = 20, requires = "list", value_name = "N")]
    pub limit: usize,
    /// Show which packets change verdict under these rules, and by which rules; the file may be the same
    #[arg(long, value_name = "NEW_RULES")]
    pub vs: Option<String>,
    /// The same for the rules of --rules6
    #[arg(long, value_name = "NEW_RULES6", requires = "vs", requires = "rules6")]
    pub vs6: Option<String>,
    /// What carries out the rules of --vs [default: told from their text, else legacy]
    #[arg(long, requires = "vs", value_name = "WHICH")]
    pub vs_semantics: Option<SemanticsChoice>,
    /// Exit with 3 if there are such packets; drop includes reject, change needs --vs
    #[arg(long, value_name = "WHAT", value_delimiter = ',', requires_if("change", "vs"))]
    pub fail_on: Vec<FailOn>,
    /// The report as one self-contained page: verdicts over time, the rules with their hits
    #[arg(long, value_name = "FILE")]
    pub html: Option<String>,
    /// Threads that judge packets, besides the one that reads and reports; what comes out stays the same
    #[arg(short = 'j', long, default_value_t = 1, value_name = "N", value_parser = threads)]
    pub jobs: usize,
    /// One JSON document, schema tamis.replay/1
    #[arg(long)]
    pub json: bool,
    /// One word per packet in capture order: accept drop reject unknown skip
    #[arg(long, help_heading = "Files to write", value_name = "FILE")]
    pub verdicts: Option<String>,
    /// One JSON object a line per packet: frame, time, tuple, in, out, path, verdict, table, chain, number, line,
    /// ctstate
    #[arg(long, help_heading = "Files to write", value_name = "FILE")]
    pub packets: Option<String>,
    /// One capture per verdict and per dropping rule, such as drop.L211.pcapng
    #[arg(long, help_heading = "Files to write", value_name = "DIR")]
    pub split: Option<PathBuf>,
    /// All packets as pcapng, with verdict and deciding rule as packet comment
    #[arg(long, help_heading = "Files to write", value_name = "FILE")]
    pub annotate: Option<String>,
    /// The rules with the counters of this replay, as iptables-save -c prints them
    #[arg(long, help_heading = "Files to write", value_name = "FILE")]
    pub save_counters: Option<String>,
    /// The same for the rules of --rules6
    #[arg(long, help_heading = "Files to write", value_name = "FILE", requires = "rules6")]
    pub save_counters6: Option<String>,
    /// Judge only packets that pass a pcap filter expression, compiled by tcpdump, or its -ddd bytecode
    #[arg(long, help_heading = "Packets to judge", value_name = "BPF")]
    pub filter: Option<String>,
    /// Judge only packets at this time (RFC 3339, or +SECONDS after the first packet) or later
    #[arg(long, help_heading = "Packets to judge", value_name = "T", value_parser = moment)]
    pub from: Option<Moment>,
    /// Judge only packets before this time
    #[arg(long, help_heading = "Packets to judge", value_name = "T", value_parser = moment)]
    pub to: Option<Moment>,
    /// Stop after so many judged packets
    #[arg(long, help_heading = "Packets to judge", value_name = "N")]
    pub count: Option<u64>,
    #[command(flatten)]
    pub walk: WalkArgs,
}

/// `tamis why`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
A packet in words: [in=IFACE] [out=IFACE] PROTOCOL SOURCE > DESTINATION [FLAGS or TYPE] [key=value …],
keys ttl mark ctstate mac len tos frag:
  tamis why rules.v4 --packet 'in=eth0 tcp 198.51.100.7:51200 > 10.0.0.9:5432 syn'
  tamis why rules.v4 --packet 'icmp 10.0.0.1 > 10.0.0.2 echo-request'
Several packets in words are a conversation: the story is that of the last one. Unless ctstate=
says it, tracking finds the state of each, and that of the first is NEW.
Exit codes: 0 accept, 1 drop or reject, 2 usage or input error, 4 unknown.")]
pub(crate) struct WhyArgs {
    /// Rules, as iptables-save or its siblings (ip6tables, arptables, ebtables) print them; - for standard input
    pub rules: String,
    /// Captures that --packet NUMBER counts in
    #[arg(value_name = "CAPTURE")]
    pub captures: Vec<String>,
    /// A packet's number in the captures, from 1, or a packet in words; in words it may be repeated
    #[arg(long = "packet", required = true, value_name = "N|SPEC")]
    pub packets: Vec<String>,
    /// List every rule that did not match, too
    #[arg(long)]
    pub all: bool,
    /// Show so many near misses: rules that the packet met and would have matched but for one test
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub near: Option<u32>,
    /// One JSON document, schema tamis.why/1
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub walk: WalkArgs,
}

/// How packets walk.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "How packets walk")]
pub(crate) struct WalkArgs {
    /// Family of the rules [default: told from the text, else ip]
    #[arg(long, value_parser = family)]
    pub family: Option<Family>,
    /// IPv6 rules beside the IPv4 ones, for captures of both
    #[arg(long, value_name = "FILE")]
    pub rules6: Option<String>,
    /// Only this table; also the table of `iptables -S` text
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// The way of every packet through the host [default: auto]
    #[arg(long)]
    pub path: Option<PathChoice>,
    /// The interface packets come in by
    #[arg(long = "in", value_name = "IFACE")]
    pub input: Option<String>,
    /// The interface packets go out by
    #[arg(long = "out", value_name = "IFACE")]
    pub output: Option<String>,
    /// A network behind an interface; may be repeated, the longest prefix counts
    #[arg(long = "net", value_name = "IFACE=CIDR", value_parser = net)]
    pub nets: Vec<(String, Network)>,
    /// The host's own addresses, comma separated; may be repeated
    #[arg(long, value_name = "CIDR", value_delimiter = ',', value_parser = network)]
    pub local: Vec<Network>,
    /// The host's routes, as `ip route show table all` prints them (IPv4, IPv6 or both)
    #[arg(long, value_name = "FILE")]
    pub routes: Option<String>,
    /// The bridge that bridge rules stand on, for --logical-in and --logical-out
    #[arg(long, value_name = "NAME")]
    pub bridge: Option<String>,
    /// The host's sets, as `ipset save` prints them, for -m set and -j SET
    #[arg(long, value_name = "FILE")]
    pub ipset: Option<String>,
    /// The address of an interface, for -j MASQUERADE and REDIRECT; may be repeated [default: by --routes]
    #[arg(long = "addr", value_name = "IFACE=ADDRESS", value_parser = addr)]
    pub addresses: Vec<(String, IpAddr)>,
    /// Changes of the access list, one a line: TIME ban|unban|accept|deny SOURCE and a DESTINATION or none; TIME is
    /// RFC 3339, +SECONDS after the first packet, or -; what it denies no rule sees
    #[arg(long, value_name = "FILE")]
    pub bans: Option<String>,
    /// How connections are tracked, where the rules need it [default: midstream for captures, kernel for
    /// packets in words]
    #[arg(long, value_name = "MODE")]
    pub ct: Option<CtChoice>,
    /// Most connections held at a time
    #[arg(long, default_value_t = DEFAULT_MAX, value_name = "N", value_parser = ct_max)]
    pub ct_max: usize,
    /// Whether a wrong IPv4 header checksum is a drop
    #[arg(long, default_value = "ignore")]
    pub checksums: ChecksumChoice,
    /// What carries out the rules, which decides what cut headers do: legacy reads a whole header or drops
    /// the packet, nft reads field by field [default: told from the text, else legacy]
    #[arg(long, value_name = "WHICH")]
    pub semantics: Option<SemanticsChoice>,
    /// Refuse rules text that iptables-restore would refuse
    #[arg(long)]
    pub strict_input: bool,
}

/// `--path`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PathChoice {
    /// From one interface to another
    Forward,
    /// To the host
    Input,
    /// From the host
    Output,
    /// By --local, else by which chains have rules
    Auto,
}

/// `--list`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ListChoice {
    /// Dropped packets
    Drop,
    /// Rejected packets
    Reject,
    /// Packets whose verdict hangs on something unknown
    Unknown,
    /// Packets whose verdict is another under --vs
    Change,
}

/// `--fail-on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Packets whose verdict hangs on something unknown
    Unknown,
    /// Dropped or rejected packets
    Drop,
    /// Packets whose verdict is another under --vs
    Change,
}

/// `--semantics`, `--vs-semantics`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SemanticsChoice {
    /// xtables, as iptables-legacy loads rules
    Legacy,
    /// nf_tables, as iptables-nft loads rules
    Nft,
}

impl From<SemanticsChoice> for Semantics {
    fn from(choice: SemanticsChoice) -> Self {
        match choice {
            SemanticsChoice::Legacy => Self::Legacy,
            SemanticsChoice::Nft => Self::Nft,
        }
    }
}

/// `--ct`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CtChoice {
    /// From an empty table, as the kernel does
    Kernel,
    /// As kernel, but segments of unknown TCP connections are taken for established ones
    Midstream,
    /// Not at all: what hangs on connections is unknown
    Off,
}

/// `--checksums`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChecksumChoice {
    /// Take them as right: captures made on the sending host hold unfinished ones
    Ignore,
    /// A wrong IPv4 header checksum is a drop by the stack
    Verify,
}

fn family(text: &str) -> Result<Family, String> {
    match Family::from_name(text) {
        Some(family) => Ok(family),
        None => Err("expected ip, ip6, arp or bridge".to_owned()),
    }
}

fn net(text: &str) -> Result<(String, Network), String> {
    let wrong = || "expected IFACE=ADDRESS/BITS".to_owned();
    let (name, cidr) = text.split_once('=').ok_or_else(wrong)?;
    if name.is_empty() {
        return Err(wrong());
    }
    Ok((name.to_owned(), network(cidr)?))
}

fn addr(text: &str) -> Result<(String, IpAddr), String> {
    let wrong = || "expected IFACE=ADDRESS".to_owned();
    let (name, address) = text.split_once('=').ok_or_else(wrong)?;
    if name.is_empty() {
        return Err(wrong());
    }
    Ok((name.to_owned(), address.parse().map_err(|_| wrong())?))
}

fn moment(text: &str) -> Result<Moment, String> {
    Moment::parse(text)
        .ok_or_else(|| "expected RFC 3339 such as 2026-11-21T10:00:00Z, or +SECONDS".to_owned())
}

fn network(text: &str) -> Result<Network, String> {
    Network::parse(text).ok_or_else(|| "expected ADDRESS or ADDRESS/BITS".to_owned())
}

/// At least one connection, and no more than the table can index.
fn ct_max(text: &str) -> Result<usize, String> {
    let max: usize = text.parse().map_err(|_| "expected a number".to_owned())?;
    if (1..=1 << 24).contains(&max) { Ok(max) } else { Err("expected 1 to 16777216".to_owned()) }
}

/// Threads: at least one, and no more than can be told apart by a byte.
fn threads(text: &str) -> Result<usize, String> {
    let threads: usize = text.parse().map_err(|_| "expected a number".to_owned())?;
    if (1..=255).contains(&threads) { Ok(threads) } else { Err("expected 1 to 255".to_owned()) }
}

fn routes(file: &str) -> anyhow::Result<Routes> {
    let text = std::fs::read_to_string(file).with_context(|| file.to_owned())?;
    Routes::parse(&text).map_err(|error| anyhow!("{file}:{error}"))
}

fn sets(file: &str) -> anyhow::Result<Sets> {
    let text = std::fs::read_to_string(file).with_context(|| file.to_owned())?;
    Sets::parse(&text).map_err(|error| anyhow!("{file}:{error}"))
}

/// Refuses `-` where standard input was read to its end already.
pub(crate) fn standard_input_once<'a>(
    names: impl IntoIterator<Item = &'a String>,
) -> anyhow::Result<()> {
    match names.into_iter().filter(|name| *name == "-").count() {
        0 | 1 => Ok(()),
        times => bail!("expected - (standard input) once, found it {times} times"),
    }
}

impl WalkArgs {
    /// The options to be typed again beside those that rules and configuration tell, each with a blank
    /// before it.
    pub(crate) fn also(&self) -> String {
        let mut options = String::new();
        let family = self.family.map(|family| family.name().to_owned());
        let named = [
            ("family", &family),
            ("table", &self.table),
            ("routes", &self.routes),
            ("ipset", &self.ipset),
            ("bridge", &self.bridge),
        ];
        for (name, value) in named {
            if let Some(value) = value {
                options.push_str(&format!(" --{name} {}", replay::shell::quote(value)));
            }
        }
        options
    }

    /// The rules, and those of `--rules6`, loaded as these arguments say.
    pub(crate) fn open(&self, rules: &str) -> anyhow::Result<Vec<RulesFile>> {
        self.open_both(rules, self.rules6.as_deref())
    }

    /// The rules, and IPv6 rules beside them, loaded as these arguments say.
    pub(crate) fn open_both(
        &self,
        rules: &str,
        rules6: Option<&str>,
    ) -> anyhow::Result<Vec<RulesFile>> {
        self.open_all(rules, rules6, self.semantics.map(Semantics::from))
    }

    /// The same, carried out by what `semantics` says.
    pub(crate) fn open_all(
        &self,
        rules: &str,
        rules6: Option<&str>,
        semantics: Option<Semantics>,
    ) -> anyhow::Result<Vec<RulesFile>> {
        let first = RulesFile::open(rules, &self.load_options())?.judged_as(semantics);
        let Some(rules6) = rules6 else { return Ok(vec![first]) };
        if first.ruleset.family == Family::Ipv6 {
            bail!("{rules}: expected IPv4 rules beside IPv6 ones, found IPv6 rules");
        }
        let options = LoadOptions { family: Some(Family::Ipv6), ..self.load_options() };
        Ok(vec![first, RulesFile::open(rules6, &options)?.judged_as(semantics)])
    }

    /// How rules text is read.
    pub(crate) fn load_options(&self) -> LoadOptions<'_> {
        LoadOptions { family: self.family, table: self.table.as_deref(), strict: self.strict_input }
    }

    /// The handler's configuration; `usual` is how connections are tracked unless that is said.
    pub(crate) fn config(&self, usual: Mode) -> anyhow::Result<Config> {
        let checksums = match self.checksums {
            ChecksumChoice::Ignore => Checksums::Ignore,
            ChecksumChoice::Verify => Checksums::Verify,
        };
        Ok(Config {
            path: match self.path {
                Some(PathChoice::Forward) => Some(Path::Forward),
                Some(PathChoice::Input) => Some(Path::Input),
                Some(PathChoice::Output) => Some(Path::Output),
                Some(PathChoice::Auto) | None => None,
            },
            input: self.input.clone(),
            output: self.output.clone(),
            nets: self.nets.clone(),
            checksums,
            bans: self.bans.as_deref().map(replay::bans_file::open).transpose()?,
            ct: conntrack::Config {
                mode: match self.ct {
                    Some(CtChoice::Kernel) => Mode::Kernel,
                    Some(CtChoice::Midstream) => Mode::Midstream,
                    None => usual,
                    Some(CtChoice::Off) => Mode::Off,
                },
                max: self.ct_max,
                checksums,
                ..conntrack::Config::default()
            },
            sets: self.ipset.as_deref().map(sets).transpose()?,
            world: World {
                local: (!self.local.is_empty()).then(|| self.local.clone()),
                routes: self.routes.as_deref().map(routes).transpose()?,
                bridge: self.bridge.clone(),
                addresses: self.addresses.clone(),
            },
            ..Config::default()
        })
    }
}
