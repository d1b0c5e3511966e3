//! The command line. Stable: scripts rely on it.

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use dataplane::{Config, Path};
use packet::Checksums;
use replay::RulesFile;
use rules::model::Family;
use rules::save::LoadOptions;
use rules::{Network, World};

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
    Replay(ReplayArgs),
    /// The whole path of one packet, rule by rule
    Why(WhyArgs),
}

/// `tamis demo`.
#[derive(Debug, ClapArgs)]
pub(crate) struct DemoArgs {
    /// Where to write demo-report.html and the demonstration's rules and capture
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: std::path::PathBuf,
}

/// `tamis replay`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Exit codes: 0 done, 2 usage or input error.
Examples:
  tamis replay rules.v4 office.pcap
  tamis replay rules.v4 office.pcap --net eth0=0.0.0.0/0 --net eth1=10.0.0.0/8 --list drop")]
pub(crate) struct ReplayArgs {
    /// Rules, as iptables-save or ip6tables-save prints them; - for standard input
    pub rules: String,
    /// Captures (pcap or pcapng, plain, gzip or zstd), one stream in this order; - for standard input
    #[arg(required = true, value_name = "CAPTURE")]
    pub captures: Vec<String>,
    #[command(flatten)]
    pub walk: WalkArgs,
    /// One word per packet in capture order: accept drop reject unknown skip
    #[arg(long, value_name = "FILE")]
    pub verdicts: Option<String>,
    /// The rules with the counters of this replay, as iptables-save -c prints them
    #[arg(long, value_name = "FILE")]
    pub save_counters: Option<String>,
    /// Show packets with this verdict, each with what decided
    #[arg(long, value_name = "VERDICT")]
    pub list: Option<ListChoice>,
    /// How many packets --list shows
    #[arg(long, default_value_t = 20, requires = "list", value_name = "N")]
    pub limit: usize,
    /// The report as one self-contained page: verdicts over time, the rules with their hits
    #[arg(long, value_name = "FILE")]
    pub html: Option<String>,
    /// One JSON document, schema tamis.replay/1
    #[arg(long)]
    pub json: bool,
}

/// `tamis why`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
A packet in words: [in=IFACE] [out=IFACE] PROTOCOL SOURCE > DESTINATION [FLAGS or TYPE] [key=value …],
keys ttl mark mac len tos frag:
  tamis why rules.v4 --packet 'in=eth0 tcp 198.51.100.7:51200 > 10.0.0.9:5432 syn'
  tamis why rules.v4 --packet 'icmp 10.0.0.1 > 10.0.0.2 echo-request'
Exit codes: 0 accept, 1 drop or reject, 2 usage or input error, 4 unknown.")]
pub(crate) struct WhyArgs {
    /// Rules, as iptables-save or ip6tables-save prints them; - for standard input
    pub rules: String,
    /// Captures that --packet NUMBER counts in
    #[arg(value_name = "CAPTURE")]
    pub captures: Vec<String>,
    /// A packet's number in the captures, from 1, or a packet in words
    #[arg(long, value_name = "N|SPEC")]
    pub packet: String,
    #[command(flatten)]
    pub walk: WalkArgs,
    /// List every rule that did not match, too
    #[arg(long)]
    pub all: bool,
    /// One JSON document, schema tamis.why/1
    #[arg(long)]
    pub json: bool,
}

/// How packets walk.
#[derive(Debug, ClapArgs)]
pub(crate) struct WalkArgs {
    /// Family of the rules [default: told from the text, else ip]
    #[arg(long, value_parser = family)]
    pub family: Option<Family>,
    /// Only this table; also the table of `iptables -S` text
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// The way of every packet through the host
    #[arg(long, default_value = "auto")]
    pub path: PathChoice,
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
    /// Whether a wrong IPv4 header checksum is a drop
    #[arg(long, default_value = "ignore")]
    pub checksums: ChecksumChoice,
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
        Some(family @ (Family::Ipv4 | Family::Ipv6)) => Ok(family),
        _ => Err("expected ip or ip6".to_owned()),
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

fn network(text: &str) -> Result<Network, String> {
    Network::parse(text).ok_or_else(|| "expected ADDRESS or ADDRESS/BITS".to_owned())
}

impl WalkArgs {
    /// The rules file, loaded as these arguments say.
    pub(crate) fn open(&self, rules: &str) -> Result<RulesFile, replay::Error> {
        let options = LoadOptions {
            family: self.family,
            table: self.table.as_deref(),
            strict: self.strict_input,
        };
        RulesFile::open(rules, &options)
    }

    /// The handler's configuration.
    pub(crate) fn config(&self) -> Config {
        Config {
            path: match self.path {
                PathChoice::Forward => Some(Path::Forward),
                PathChoice::Input => Some(Path::Input),
                PathChoice::Output => Some(Path::Output),
                PathChoice::Auto => None,
            },
            input: self.input.clone(),
            output: self.output.clone(),
            nets: self.nets.clone(),
            checksums: match self.checksums {
                ChecksumChoice::Ignore => Checksums::Ignore,
                ChecksumChoice::Verify => Checksums::Verify,
            },
            world: World { local: (!self.local.is_empty()).then(|| self.local.clone()) },
        }
    }
}
