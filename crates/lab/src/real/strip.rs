//! Which rules cannot be compared packet by packet, and why.

use rules::ext::Support;
use rules::model::{Action, Rule};

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
/// Matches that hang on when a packet comes, or on the packets before it.
const TIMED_MATCHES: &[&str] = &["hashlimit", "limit", "quota", "rateest", "recent", "time"];
/// Targets that track, that belong to one table or hook, that this kernel does not have, or after which
/// tamis leaves the packet's bytes open (TCPMSS: the path's MTU, and a header that grows).
const TARGETS: &[&str] = &[
    "CLUSTERIP",
    "CONNMARK",
    "CONNSECMARK",
    "CT",
    "IDLETIMER",
    "LED",
    "NOTRACK",
    "RATEEST",
    "SECMARK",
    "SYNPROXY",
    "TCPMSS",
    "TEE",
    "TPROXY",
    "TRACE",
    "ULOG",
];

/// What the rule hangs on, if it is left out: `-m NAME` or `-j NAME`.
pub(super) fn reason(rule: &Rule) -> Option<String> {
    let mut matches = rule.matches.iter();
    let used = matches.find(|used| {
        used.support == Support::Parsed
            || TRACKING_MATCHES.contains(&&*used.name)
            || TIMED_MATCHES.contains(&&*used.name)
    });
    if let Some(used) = used {
        return Some(format!("-m {}", used.name));
    }
    let Action::Target(used) = &rule.action else { return None };
    let foreign = used.support == Support::Parsed || TARGETS.contains(&&*used.name);
    foreign.then(|| format!("-j {}", used.name))
}
