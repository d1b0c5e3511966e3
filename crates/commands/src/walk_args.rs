//! How packets walk: the arguments of every command that evaluates packets.

use std::net::IpAddr;

use clap::{Args, ValueEnum};
use conntrack::Mode;
use dataplane::Path;
use host::foreign::Foreign;
use host::{Kernel, Network, QueueVerdict, Zone};
use packet::Checksums;
use replay::walk::{HostFacts, HostFolder, WalkOptions, geoip, words};
use rules::Backend;
use rules::model::Family;

use crate::collect_command;
use crate::screen;

/// What is known of the host, in every command that has packets pass one.
#[derive(Debug, Args)]
pub(crate) struct HostArgs {
    /// The host's own addresses, comma separated; may be repeated
    #[arg(long, value_name = "CIDR", value_delimiter = ',', value_parser = words::network)]
    pub local: Vec<Network>,
    /// The host's routes, as `ip route show table all` prints them (IPv4, IPv6 or both)
    #[arg(long, value_name = "FILE")]
    pub routes: Option<String>,
    /// The host's sets, as `ipset save` prints them, for -m set and -j SET
    #[arg(long, value_name = "FILE")]
    pub ipset: Option<String>,
    /// The address of an interface, for -j MASQUERADE and REDIRECT; may be repeated [default: by --routes]
    #[arg(long = "addr", value_name = "IFACE=ADDRESS", value_parser = words::addr)]
    pub addresses: Vec<(String, IpAddr)>,
}

/// How packets walk.
#[derive(Debug, Args)]
#[command(next_help_heading = "How packets walk")]
pub(crate) struct WalkArgs {
    /// Family of the rules [default: told from the text, else ip]
    #[arg(long, value_parser = words::family)]
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
    #[arg(long = "net", value_name = "IFACE=CIDR", value_parser = words::net)]
    pub nets: Vec<(String, Network)>,
    #[command(flatten)]
    pub host: HostArgs,
    /// The host's links, as `ip -o link` or `ip -d -o link` prints them
    #[arg(long, value_name = "FILE")]
    pub links: Option<String>,
    /// The bridge that bridge rules stand on, for --logical-in and --logical-out
    #[arg(long, value_name = "NAME")]
    pub bridge: Option<String>,
    /// The folder of countries for -m geoip, as xt_geoip_build makes it [default: xt_geoip in a HOST folder]
    #[arg(long, value_name = "DIR")]
    pub geoip: Option<String>,
    /// What SYNs of operating systems look like, for -m osf: the file that nfnl_osf -f is given
    /// [default: pf.os in a HOST folder]
    #[arg(long, value_name = "FILE")]
    pub osf_file: Option<String>,
    /// Changes of the access list, one a line: TIME ban|unban|accept|deny SOURCE and a DESTINATION or none; TIME is
    /// RFC 3339, +SECONDS after the first packet, or -; what it denies no rule sees
    #[arg(long, value_name = "FILE")]
    pub bans: Option<String>,
    /// How connections are tracked, where the rules need it [default: midstream for captures, kernel for
    /// packet specs]
    #[arg(long, value_name = "MODE")]
    pub ct: Option<CtChoice>,
    /// Most connections held at a time [default: by sysctl.txt of a folder, else 262144]
    #[arg(long, value_name = "N", value_parser = words::ct_max)]
    pub ct_max: Option<usize>,
    /// Do without what frames that left tell of packets: drawn ports, and that no rule dropped them
    #[arg(long)]
    pub no_pair: bool,
    /// Whether a wrong checksum counts: of an IPv4 header it is a drop, further up it makes a packet INVALID
    #[arg(long, default_value = "arrivals")]
    pub checksums: ChecksumChoice,
    /// The backend of the rules, which decides what cut headers do: legacy reads a whole header or drops
    /// the packet, nft reads field by field [default: told from the text, else legacy]
    #[arg(long, value_name = "WHICH")]
    pub semantics: Option<SemanticsChoice>,
    /// The version of Linux whose answers are wanted, as `uname -r` prints it; where they differ and it does not tell, a
    /// packet is unknown [default: by uname.txt of a folder, else 6.18.44]
    #[arg(long, value_name = "VERSION", value_parser = words::kernel)]
    pub kernel: Option<Kernel>,
    /// What the program on a queue of -j NFQUEUE answers: accept, drop, none where no program listens, or unknown; with a
    /// number of one queue, without of all others; may be repeated [default: unknown]
    #[arg(long = "queue-verdict", value_name = "[NUM=]VERDICT", value_parser = words::queue_verdict)]
    pub queue_verdicts: Vec<(Option<u16>, QueueVerdict)>,
    /// The time zone that the host's kernel was told of, which -m time --kerneltz counts by: UTC, an offset such as
    /// +02:00, or a name such as Europe/Berlin, whose offset is that of each packet's day
    #[arg(long, value_name = "ZONE", value_parser = words::zone, allow_hyphen_values = true)]
    pub tz: Option<Zone>,
    /// Refuse rules text that iptables-restore would refuse
    #[arg(long)]
    pub strict_input: bool,
    /// Ignore the chains of nft, and of iptables-legacy next to iptables-nft, that packets of a HOST pass in addition to its
    /// rules: what these accept is then accepted, at your risk
    #[arg(long)]
    pub ignore_nft: bool,
}

/// Tells of the chains of a host that are not evaluated.
pub(crate) fn warn_of_foreign(foreign: &Foreign) {
    if let Some(warning) = foreign.warning() {
        screen::tell(&format!("tamis: warning: {warning}"));
    }
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

/// `--semantics`, `--vs-semantics`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SemanticsChoice {
    /// xtables, as iptables-legacy loads rules
    Legacy,
    /// nf_tables, as iptables-nft loads rules
    Nft,
}

impl From<SemanticsChoice> for Backend {
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
    /// The table was empty at the start, and every packet was captured
    Kernel,
    /// Connections may have begun before the capture: new or established until they are answered
    Midstream,
    /// Not at all: what depends on connections is unknown
    Off,
}

/// `--checksums`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChecksumChoice {
    /// Take them as right: captures made on the sending host hold unfinished ones
    Ignore,
    /// Those of what the capture says came in
    Arrivals,
    /// All of them
    Verify,
}

impl PathChoice {
    /// The path that it names, if it names one.
    pub(crate) fn path(self) -> Option<Path> {
        match self {
            Self::Forward => Some(Path::Forward),
            Self::Input => Some(Path::Input),
            Self::Output => Some(Path::Output),
            Self::Auto => None,
        }
    }
}

impl HostArgs {
    /// The files that are read.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &String> {
        self.routes.iter().chain(&self.ipset)
    }

    /// What they say, and nothing else.
    pub(crate) fn facts(&self) -> HostFacts {
        HostFacts {
            local: self.local.clone(),
            routes: self.routes.clone(),
            ipset: self.ipset.clone(),
            addresses: self.addresses.clone(),
            ..HostFacts::default()
        }
    }
}

impl WalkArgs {
    /// The files that are read: rules, which may be folders, and the files that these arguments name.
    pub(crate) fn inputs<'a>(&self, rules: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let options = [&self.rules6, &self.links, &self.osf_file, &self.bans];
        let options = options.into_iter().flatten().chain(self.host.inputs()).cloned();
        let rules = rules.into_iter().flat_map(|name| match HostFolder::at(name) {
            Some(folder) => folder.files(collect_command::files()).collect(),
            None => vec![name.to_owned()],
        });
        let countries = self.geoip.iter().flat_map(|name| geoip::files(name));
        rules.chain(options).chain(countries).collect()
    }

    /// What they say.
    pub(crate) fn options(&self) -> WalkOptions {
        let host = HostFacts {
            nets: self.nets.clone(),
            links: self.links.clone(),
            bridge: self.bridge.clone(),
            geoip: self.geoip.clone(),
            osf_file: self.osf_file.clone(),
            kernel: self.kernel,
            queue_verdicts: self.queue_verdicts.clone(),
            zone: self.tz.clone(),
            ignore_nft: self.ignore_nft,
            ..self.host.facts()
        };
        WalkOptions {
            host,
            family: self.family,
            rules6: self.rules6.clone(),
            table: self.table.clone(),
            path: self.path.and_then(PathChoice::path),
            input: self.input.clone(),
            output: self.output.clone(),
            bans: self.bans.clone(),
            ct: self.ct.map(|choice| match choice {
                CtChoice::Kernel => Mode::Kernel,
                CtChoice::Midstream => Mode::Midstream,
                CtChoice::Off => Mode::Off,
            }),
            ct_max: self.ct_max,
            no_pair: self.no_pair,
            checksums: match self.checksums {
                ChecksumChoice::Ignore => Checksums::Ignore,
                ChecksumChoice::Arrivals => Checksums::Arrivals,
                ChecksumChoice::Verify => Checksums::Verify,
            },
            semantics: self.semantics.map(Backend::from),
            strict_input: self.strict_input,
            legacy_apart: false,
            named: Vec::new(),
        }
    }
}
