//! The tables of all kinds, and how they are found by name, by protocol and by option.

use super::{MatchKind, Support, TargetKind};
use super::{
    addrtype, ah, among, arp, bpf, cgroup, cluster, comment, connbytes, connlabel, connlimit,
    connmark, conntrack, cpu, dccp, devgroup, dscp, dst, ecn, esp, eui64, frag, hashlimit, hbh,
    helper, icmp, ip, ipcomp, iprange, ipv6header, ipvs, length, limit, llc, mac, mark, mh,
    multiport, nfacct, osf, owner, physdev, pkttype, policy, quota, rateest, realm, recent,
    rpfilter, rt, sctp, set, socket, srh, state, statistic, stp, string, target_arpreply,
    target_audit, target_checksum, target_classify, target_clusterip, target_connmark,
    target_connsecmark, target_ct, target_dnat, target_dnpt, target_dscp, target_ecn, target_hmark,
    target_idletimer, target_led, target_log, target_mac, target_mangle, target_mark,
    target_mark_frame, target_masquerade, target_netmap, target_nflog, target_nfqueue,
    target_notrack, target_queue, target_rateest, target_redirect, target_reject, target_secmark,
    target_set, target_snat, target_snpt, target_synproxy, target_tcpmss, target_tcpoptstrip,
    target_tee, target_tos, target_tproxy, target_trace, target_ttl, target_ulog, tcp, tcpmss,
    time, tos, ttl, u32, udp, vlan, watch,
};
use crate::model::Family;

/// Every kind of match.
pub static MATCHES: &[&MatchKind] = &[
    &addrtype::KIND,
    &ah::V4_KIND,
    &ah::V6_KIND,
    &among::KIND,
    &arp::KIND,
    &bpf::KIND,
    &cgroup::KIND,
    &cluster::KIND,
    &comment::KIND,
    &connbytes::KIND,
    &connlabel::KIND,
    &connlimit::KIND,
    &connmark::KIND,
    &conntrack::KIND,
    &cpu::KIND,
    &dccp::KIND,
    &devgroup::KIND,
    &dscp::KIND,
    &dst::KIND,
    &ecn::KIND,
    &esp::KIND,
    &eui64::KIND,
    &frag::KIND,
    &hashlimit::KIND,
    &hbh::KIND,
    &helper::KIND,
    &icmp::ICMP,
    &icmp::ICMP6,
    &ip::V4_KIND,
    &ip::V6_KIND,
    &ipcomp::KIND,
    &iprange::KIND,
    &ipv6header::KIND,
    &ipvs::KIND,
    &length::KIND,
    &limit::KIND,
    &llc::KIND,
    &mac::KIND,
    &mark::KIND,
    &mark::FRAME_KIND,
    &mh::KIND,
    &multiport::KIND,
    &nfacct::KIND,
    &osf::KIND,
    &owner::KIND,
    &physdev::KIND,
    &pkttype::KIND,
    &pkttype::FRAME_KIND,
    &policy::KIND,
    &quota::KIND,
    &rateest::KIND,
    &realm::KIND,
    &recent::KIND,
    &rpfilter::KIND,
    &rt::KIND,
    &sctp::KIND,
    &set::KIND,
    &socket::KIND,
    &srh::KIND,
    &state::KIND,
    &statistic::KIND,
    &stp::KIND,
    &string::KIND,
    &tcp::KIND,
    &tcpmss::KIND,
    &time::KIND,
    &tos::KIND,
    &ttl::HL,
    &ttl::TTL,
    &u32::KIND,
    &udp::KIND,
    &vlan::KIND,
    &watch::LOG,
    &watch::NFLOG,
];

/// Every kind of target but the built-in verdicts.
pub static TARGETS: &[&TargetKind] = &[
    &target_arpreply::KIND,
    &target_audit::KIND,
    &target_checksum::KIND,
    &target_classify::KIND,
    &target_classify::ARP_KIND,
    &target_clusterip::KIND,
    &target_connmark::KIND,
    &target_connsecmark::KIND,
    &target_ct::KIND,
    &target_dnat::KIND,
    &target_dnpt::KIND,
    &target_dscp::KIND,
    &target_ecn::KIND,
    &target_hmark::KIND,
    &target_idletimer::KIND,
    &target_led::KIND,
    &target_log::KIND,
    &target_mac::DNAT,
    &target_mac::REDIRECT,
    &target_mac::SNAT,
    &target_mangle::KIND,
    &target_mark::KIND,
    &target_mark::ARP_KIND,
    &target_mark_frame::KIND,
    &target_masquerade::KIND,
    &target_netmap::KIND,
    &target_nflog::KIND,
    &target_nfqueue::KIND,
    &target_notrack::KIND,
    &target_queue::KIND,
    &target_rateest::KIND,
    &target_redirect::KIND,
    &target_reject::V4_KIND,
    &target_reject::V6_KIND,
    &target_secmark::KIND,
    &target_set::KIND,
    &target_snat::KIND,
    &target_snpt::KIND,
    &target_synproxy::KIND,
    &target_tcpmss::KIND,
    &target_tcpoptstrip::KIND,
    &target_tee::KIND,
    &target_tos::KIND,
    &target_tproxy::KIND,
    &target_trace::KIND,
    &target_ttl::HL,
    &target_ttl::TTL,
    &target_ulog::KIND,
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

/// Targets of xtables-addons and vendors that rulesets in the wild name: kept as they stand. Any other
/// unknown name after `-j` is taken for a chain, and refused when there is none.
const FOREIGN_TARGETS: &[&str] = &[
    "ACCOUNT",
    "CHAOS",
    "DELUDE",
    "DHCPMAC",
    "DNETMAP",
    "ECHO",
    "FULLCONENAT",
    "FLOWOFFLOAD",
    "IMQ",
    "IPMARK",
    "LOGMARK",
    "NDPI",
    "PROTO",
    "RTPENGINE",
    "SYSRQ",
    "TARPIT",
    "XOR",
];

/// Whether `name` is a target of the wild.
#[must_use]
pub fn is_foreign_target(name: &str) -> bool {
    FOREIGN_TARGETS.contains(&name)
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
