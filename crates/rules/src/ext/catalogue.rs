//! The tables of all kinds, and how they are found by name, by protocol and by option.

use super::{MatchKind, Support, TargetKind, matches, targets};
use crate::family::Family;

/// Every kind of match.
pub static MATCHES: &[&MatchKind] = &[
    &matches::addrtype::KIND,
    &matches::ah::V4_KIND,
    &matches::ah::V6_KIND,
    &matches::among::KIND,
    &matches::arp::KIND,
    &matches::bpf::KIND,
    &matches::cgroup::KIND,
    &matches::cluster::KIND,
    &matches::comment::KIND,
    &matches::connbytes::KIND,
    &matches::connlabel::KIND,
    &matches::connlimit::KIND,
    &matches::connmark::KIND,
    &matches::conntrack::KIND,
    &matches::cpu::KIND,
    &matches::dccp::KIND,
    &matches::devgroup::KIND,
    &matches::dscp::KIND,
    &matches::option_header::DST,
    &matches::ecn::KIND,
    &matches::esp::KIND,
    &matches::eui64::KIND,
    &matches::frag::KIND,
    &matches::geoip::KIND,
    &matches::hashlimit::KIND,
    &matches::option_header::HBH,
    &matches::helper::KIND,
    &matches::icmp::ICMP,
    &matches::icmp::ICMP6,
    &matches::ip::V4_KIND,
    &matches::ip::V6_KIND,
    &matches::ipcomp::KIND,
    &matches::iprange::KIND,
    &matches::ipv6header::KIND,
    &matches::ipvs::KIND,
    &matches::length::KIND,
    &matches::limit::KIND,
    &matches::llc::KIND,
    &matches::mac::KIND,
    &matches::mark::KIND,
    &matches::mark::FRAME_KIND,
    &matches::mh::KIND,
    &matches::multiport::KIND,
    &matches::nfacct::KIND,
    &matches::osf::KIND,
    &matches::owner::KIND,
    &matches::physdev::KIND,
    &matches::pkttype::KIND,
    &matches::pkttype::FRAME_KIND,
    &matches::policy::KIND,
    &matches::quota::KIND,
    &matches::rateest::KIND,
    &matches::realm::KIND,
    &matches::recent::KIND,
    &matches::rpfilter::KIND,
    &matches::rt::KIND,
    &matches::sctp::KIND,
    &matches::set::KIND,
    &matches::socket::KIND,
    &matches::srh::KIND,
    &matches::state::KIND,
    &matches::statistic::KIND,
    &matches::stp::KIND,
    &matches::string::KIND,
    &matches::string::FRAME_KIND,
    &matches::tcp::KIND,
    &matches::tcpmss::KIND,
    &matches::time::KIND,
    &matches::tos::KIND,
    &matches::ttl::HL,
    &matches::ttl::TTL,
    &matches::u32::KIND,
    &matches::udp::KIND,
    &matches::vlan::KIND,
    &matches::watch::LOG,
    &matches::watch::NFLOG,
];

/// Every kind of target but the built-in verdicts.
pub static TARGETS: &[&TargetKind] = &[
    &targets::arpreply::KIND,
    &targets::audit::KIND,
    &targets::checksum::KIND,
    &targets::classify::KIND,
    &targets::classify::ARP_KIND,
    &targets::clusterip::KIND,
    &targets::connmark::KIND,
    &targets::connsecmark::KIND,
    &targets::ct::KIND,
    &targets::dnat::KIND,
    &targets::npt::DNPT,
    &targets::dscp::KIND,
    &targets::ecn::KIND,
    &targets::hmark::KIND,
    &targets::idletimer::KIND,
    &targets::led::KIND,
    &targets::log::KIND,
    &targets::mac::DNAT,
    &targets::mac::REDIRECT,
    &targets::mac::SNAT,
    &targets::mangle::KIND,
    &targets::mark::KIND,
    &targets::mark::ARP_KIND,
    &targets::mark_frame::KIND,
    &targets::masquerade::KIND,
    &targets::netmap::KIND,
    &targets::nflog::KIND,
    &targets::nfqueue::KIND,
    &targets::notrack::KIND,
    &targets::queue::KIND,
    &targets::rateest::KIND,
    &targets::redirect::KIND,
    &targets::reject::V4_KIND,
    &targets::reject::V6_KIND,
    &targets::secmark::KIND,
    &targets::set::KIND,
    &targets::snat::KIND,
    &targets::npt::SNPT,
    &targets::synproxy::KIND,
    &targets::tcpmss::KIND,
    &targets::tcpoptstrip::KIND,
    &targets::tee::KIND,
    &targets::tos::KIND,
    &targets::tproxy::KIND,
    &targets::trace::KIND,
    &targets::ttl::HL,
    &targets::ttl::TTL,
    &targets::ulog::KIND,
];

/// The match of this name in this family.
#[must_use]
pub fn find_match(name: &str, family: Family) -> Option<&'static MatchKind> {
    let named = |kind: &MatchKind| kind.name == name || kind.aliases.contains(&name);
    MATCHES.iter().copied().find(|kind| named(kind) && kind.families.contains(&family))
}

/// The match that `-p protocol` brings along in this family.
#[must_use]
pub fn find_implied(protocol: u8, family: Family) -> Option<&'static MatchKind> {
    let implied = |kind: &MatchKind| kind.protocol == Some(protocol);
    MATCHES.iter().copied().find(|kind| implied(kind) && kind.families.contains(&family))
}

/// The match that an option of this name loads by itself, where no `-m` names matches.
#[must_use]
pub fn find_match_with(option: &str, family: Family) -> Option<&'static MatchKind> {
    let has = |kind: &MatchKind| kind.options.iter().any(|opt| opt.is_called(option));
    MATCHES.iter().copied().find(|kind| kind.families.contains(&family) && has(kind))
}

/// The target of this name in this family.
#[must_use]
pub fn find_target(name: &str, family: Family) -> Option<&'static TargetKind> {
    TARGETS.iter().copied().find(|kind| kind.name == name && kind.families.contains(&family))
}

/// One line of the table of what is supported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supported {
    /// `-m NAME` or `-j NAME`.
    pub name: String,
    /// Families that have it.
    pub families: Vec<Family>,
    /// Evaluated or only parsed.
    pub support: Support,
}

/// Everything that the tables above know, matches first, by name.
#[must_use]
pub fn supported() -> Vec<Supported> {
    let matches =
        MATCHES.iter().map(|kind| (format!("-m {}", kind.name), kind.families, kind.support));
    let targets =
        TARGETS.iter().map(|kind| (format!("-j {}", kind.name), kind.families, kind.support));
    let mut all: Vec<Supported> = Vec::new();
    for (name, families, support) in matches.chain(targets) {
        match all.iter_mut().find(|known| known.name == name && known.support == support) {
            Some(known) => known.families.extend(families),
            None => all.push(Supported { name, families: families.to_vec(), support }),
        }
    }
    all.sort_by(|a, b| (b.name.as_bytes()[1], &a.name).cmp(&(a.name.as_bytes()[1], &b.name)));
    all
}
