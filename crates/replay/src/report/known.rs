//! How what is not known can be made known: the option, the file, or the word of a packet spec that says it.

use dataplane::Why;
use host::Missing;
use rules::TableKind;
use rules::eval::{Cause, RuleRef};
use rules::model::Action;

use crate::rules_file::RulesFile;
use crate::spec::Lack;

/// What a verdict depends on of what a described packet lacks, most telling first.
pub(super) fn lacking(why: &Why, file: Option<&RulesFile>, lacks: &[Lack]) -> Vec<Lack> {
    let of_packet = match why {
        Why::Fragment => Some(Lack::Len),
        Why::Size => Some(Lack::Df),
        _ => None,
    };
    if let Some(lack) = of_packet.filter(|lack| lacks.contains(lack)) {
        return vec![lack];
    }
    let (Why::Rule(_, at, cause), Some(file)) = (why, file) else { return Vec::new() };
    let (.., rule) = file.rule(*at);
    let read: &[Lack] = match cause {
        Cause::Match(index) => match rule.matches.get(usize::from(*index)) {
            Some(named) => read_by(&named.name),
            None => &[],
        },
        Cause::Bytes => &[Lack::Mac],
        Cause::Target => &[Lack::Options, Lack::Payload],
        _ => &[],
    };
    let mut found: Vec<Lack> = read.iter().copied().filter(|lack| lacks.contains(lack)).collect();
    // Where the contents are given, so is the length.
    if found.contains(&Lack::Payload) {
        found.retain(|lack| *lack != Lack::Len);
    }
    found
}

/// What a match reads of a packet that descriptions may lack.
fn read_by(name: &str) -> &'static [Lack] {
    match name {
        "string" => &[Lack::Payload, Lack::Options, Lack::Len],
        "u32" | "bpf" => &[
            Lack::Payload,
            Lack::Options,
            Lack::Len,
            Lack::Seq,
            Lack::Ack,
            Lack::Win,
            Lack::Chunk,
            Lack::Type,
            Lack::Spi,
            Lack::Id,
            Lack::Df,
            Lack::Label,
        ],
        "length" | "quota" | "hashlimit" | "connbytes" => &[Lack::Len],
        "tcp" | "tcpmss" => &[Lack::Options],
        "osf" => &[Lack::Options, Lack::Df],
        "sctp" => &[Lack::Chunk],
        "dccp" => &[Lack::Type],
        "esp" | "ah" => &[Lack::Spi],
        "mac" | "among" => &[Lack::Mac],
        "conntrack" | "state" => &[Lack::Chunk, Lack::Quote],
        _ => &[],
    }
}

/// How to give what a described packet lacks.
pub(super) fn to_give(lacks: &[Lack]) -> Option<String> {
    let examples: Vec<&str> = lacks.iter().map(|lack| lack.example()).collect();
    (!lacks.is_empty()).then(|| format!("give {} in the packet", examples.join(", and ")))
}

/// How to make known what a verdict depends on; `file` is that of the rule, if a rule's. None where nothing can tell.
pub(super) fn how(why: &Why, file: Option<&RulesFile>) -> Option<String> {
    let text = match why {
        Why::Rule(_, at, cause) => return of_rule(file?, *at, *cause),
        Why::NotCaptured => "capture whole packets (tcpdump -s 0)",
        Why::Fragment => "capture the other fragments of its packet, too",
        Why::Translation => {
            "capture both sides (tcpdump -i any), which shows what it was translated to"
        }
        Why::Room => "give --ct-max as the host has it (sysctl net.netfilter.nf_conntrack_max)",
        Why::Tracker => return None,
        Why::Unrecorded => "capture on all interfaces (tcpdump -i any)",
        Why::Way => "give the host's own addresses with --local, or a HOST folder (tamis collect)",
        Why::Size => {
            "capture where segments are as they leave (ethtool -K IFACE tso off gso off gro off)"
        }
        Why::Foreign(_) => {
            "look at its rules where it is loaded, or leave such chains out at your risk (--ignore-nft)"
        }
        Why::Host(missing) => return of_host(*missing),
    };
    Some(text.to_owned())
}

fn of_host(missing: Missing) -> Option<String> {
    let file = match missing {
        Missing::Routes | Missing::Addresses | Missing::Groups | Missing::Rules => missing.name(),
        Missing::Hairpin => "links.txt (ip -d -o link)",
        Missing::BridgeCalls => "sysctl.txt (sysctl net.bridge 2>&1)",
        Missing::Input => return Some("give --in, or --net IFACE=CIDR for each side".to_owned()),
        Missing::Policy | Missing::Mark | Missing::Service | Missing::SourceRoute => return None,
    };
    Some(format!("add {file} to the HOST folder (tamis collect)"))
}

const OF_INPUT: &str = "give --in, in= in the packet, or --net IFACE=CIDR for each side";
const OF_OUTPUT: &str = "give --out, out= in the packet, or --net IFACE=CIDR for each side";

fn of_rule(file: &RulesFile, at: RuleRef, cause: Cause) -> Option<String> {
    let (table, _, rule) = file.rule(at);
    let text = match cause {
        Cause::Input => OF_INPUT,
        Cause::Output => OF_OUTPUT,
        Cause::Bytes => {
            "capture whole packets (tcpdump -s 0), and both sides of a translation (-i any)"
        }
        Cause::Match(index) => of_match(&rule.matches.get(usize::from(index))?.name)?,
        Cause::Target => match &rule.action {
            Action::Target(target) => of_target(&target.name, &table.name)?,
            _ => return None,
        },
        Cause::Past => "give the packets before it, or the packet in words with ctstate=",
        Cause::Steps | Cause::Patience | Cause::Stopped => return None,
    };
    Some(text.to_owned())
}

/// Matches that something beside the packet would tell.
fn of_match(name: &str) -> Option<&'static str> {
    Some(match name {
        "set" => "give the sets with --ipset FILE (ipset save)",
        "osf" => "give the fingerprints with --osf-file FILE, which nfnl_osf -f is given (pf.os)",
        "geoip" => {
            "give the database with --geoip DIR, which holds a file for each country (DE.iv4)"
        }
        "conntrack" | "state" => {
            "give the packets before it, or ctstate= in the packet, or a capture from its connection's beginning on"
        }
        "ct state" => {
            "give the packets before it, or ctstate= in the packet, or a capture from its connection's beginning on"
        }
        "iif" | "iifname" => OF_INPUT,
        "oif" | "oifname" => OF_OUTPUT,
        "meta mark" => "give mark= in the packet",
        "connmark" | "connbytes" | "connlabel" | "helper" => {
            "give a capture from the beginning of its connection on"
        }
        "mark" => "give mark= in the packet",
        "physdev" => {
            "give links.txt and bridge.txt in a HOST folder (tamis collect), and capture with -i any"
        }
        "devgroup" => "give links.txt in a HOST folder (tamis collect)",
        "time" => {
            "ask with a capture, whose packets have times, and give the host's time zone with --tz"
        }
        "addrtype" | "rpfilter" | "realm" => {
            "give --local and --routes, or a HOST folder (tamis collect)"
        }
        "mac" | "pkttype" => "capture with the link header (an Ethernet interface, not -i any)",
        _ => return None,
    })
}

/// Targets of which something beside the packet would tell what they do, in this table.
fn of_target(name: &str, table: &str) -> Option<&'static str> {
    Some(match name {
        // An accepted packet goes without its connection's translation there: drop alone would tell.
        "NFQUEUE" | "QUEUE" if table != TableKind::NAT => {
            "give --queue-verdict accept, drop or none: what the program on the queue answers"
        }
        "MASQUERADE" | "SNAT" | "DNAT" | "REDIRECT" | "NETMAP" => {
            "capture both sides (tcpdump -i any), which shows what it was translated to"
        }
        "SET" => "give the sets with --ipset FILE (ipset save)",
        _ => return None,
    })
}
