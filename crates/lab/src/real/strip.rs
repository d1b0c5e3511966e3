//! Which rules cannot be compared, and why.

use rules::ext::Support;
use rules::model::{Action, Rule};

/// Matches that depend on when a packet comes, or on the packets before it.
const TIMED_MATCHES: &[&str] = &["hashlimit", "quota", "rateest", "time"];
/// Those of them that whole conversations are compared with.
const REMEMBERING_MATCHES: &[&str] = &["limit", "recent"];
/// Matches that make the kernel track connections, which keeps state between packets.
const TRACKING_MATCHES: &[&str] = &[
    "cluster",
    "connbytes",
    "connlabel",
    "connlimit",
    "connmark",
    "conntrack",
    "helper",
    "socket",
    "state",
];
/// Matches that depend on what the host has.
const HOST_MATCHES: &[&str] = &["cgroup", "devgroup", "owner", "realm", "set", "socket"];
/// Those of them that are not compared packet by packet either.
const OF_THE_HOST: &[&str] = &["cgroup", "devgroup", "owner", "realm"];
/// Targets that belong to one table or hook, that this kernel does not have, that send copies, or after which
/// tamis leaves the packet's bytes open (TCPMSS: the path's MTU, and a header that grows).
const TARGETS: &[&str] = &[
    "CLUSTERIP",
    "CONNSECMARK",
    "IDLETIMER",
    "LED",
    "RATEEST",
    "SECMARK",
    "SYNPROXY",
    "TCPMSS",
    "TEE",
    "TPROXY",
    "TRACE",
    "ULOG",
];
/// Targets that track connections.
const TRACKING_TARGETS: &[&str] = &["CONNMARK", "CT", "NOTRACK"];

/// What is left out of a comparison, besides what tamis only parses.
#[derive(Debug)]
pub(super) struct LeftOut {
    matches: &'static [&'static [&'static str]],
    targets: &'static [&'static [&'static str]],
}

/// Packet by packet: nothing may depend on an earlier one.
pub(super) const OF_PACKETS: LeftOut = LeftOut {
    matches: &[TIMED_MATCHES, REMEMBERING_MATCHES, TRACKING_MATCHES, OF_THE_HOST],
    targets: &[TARGETS, TRACKING_TARGETS],
};
/// In whole conversations: what they make of state is compared.
pub(super) const OF_CONVERSATIONS: LeftOut =
    LeftOut { matches: &[TIMED_MATCHES, HOST_MATCHES], targets: &[TARGETS] };

impl LeftOut {
    /// What the rule depends on, if it is left out: `-m NAME` or `-j NAME`.
    pub(super) fn reason(&self, rule: &Rule) -> Option<String> {
        let is_out = |lists: &[&[&str]], support, name: &str| {
            support == Support::Parsed || lists.iter().any(|list| list.contains(&name))
        };
        let mut matches = rule.matches.iter();
        if let Some(used) = matches.find(|used| is_out(self.matches, used.support, &used.name)) {
            return Some(format!("-m {}", used.name));
        }
        let Action::Target(used) = &rule.action else { return None };
        is_out(self.targets, used.support, &used.name).then(|| format!("-j {}", used.name))
    }
}
