//! How what is not known can be made known: the option, the file, or the word of a packet spec that says it.

use dataplane::Why;
use host::Missing;
use rules::TableKind;
use rules::eval::{Cause, RuleRef};
use rules::model::Action;

use crate::rules_file::RulesFile;

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
        Why::Way => "give the host's own addresses with --local, or a HOST folder (tamis collect)",
        Why::Size => {
            "capture where segments are as they leave (ethtool -K IFACE tso off gso off gro off)"
        }
        Why::Host(missing) => return of_host(*missing),
    };
    Some(text.to_owned())
}

fn of_host(missing: Missing) -> Option<String> {
    let file = match missing {
        Missing::Routes | Missing::Addresses | Missing::Groups | Missing::Rules => missing.name(),
        Missing::Input => return Some("give --in, or --net IFACE=CIDR for each side".to_owned()),
        Missing::Policy | Missing::Mark | Missing::Service | Missing::SourceRoute => return None,
    };
    Some(format!("add {file} to the HOST folder (tamis collect)"))
}

fn of_rule(file: &RulesFile, at: RuleRef, cause: Cause) -> Option<String> {
    let (table, _, rule) = file.rule(at);
    let text = match cause {
        Cause::Input => "give --in, in= in the packet, or --net IFACE=CIDR for each side",
        Cause::Output => "give --out, out= in the packet, or --net IFACE=CIDR for each side",
        Cause::Bytes => {
            "capture whole packets (tcpdump -s 0), and both sides of a translation (-i any)"
        }
        Cause::Match(index) => of_match(&rule.matches.get(usize::from(index))?.name)?,
        Cause::Target => match &rule.action {
            Action::Target(target) => of_target(&target.name, table.name)?,
            _ => return None,
        },
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
        "connmark" | "connbytes" | "connlabel" | "helper" => {
            "give a capture from the beginning of its connection on"
        }
        "mark" => "give mark= in the packet",
        "physdev" => {
            "give links.txt and bridge.txt in a HOST folder (tamis collect), and capture with -i any"
        }
        "devgroup" => "give links.txt in a HOST folder (tamis collect)",
        "time" => "give the host's time zone with --tz, and a capture with times",
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
