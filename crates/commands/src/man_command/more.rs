//! What manual pages say and help does not: examples of commands whose help is a few lines, exit codes that whole groups
//! of commands share, and files.

/// Exit codes of a command that says nothing else.
pub(super) const EXIT: &str = "0 done, 2 usage or input error.";

/// Exit codes of every `tamis ctl`.
const CTL_EXIT: &str = "0 done, 1 the run refuses, 2 usage or input error, or no run listens, \
    6 the revision in force is not the one that --if-rev names.";

/// The exit codes of a command that its help does not tell.
pub(super) fn exit(page: &str) -> Option<&'static str> {
    match page {
        "tamis-ctl" => Some(CTL_EXIT),
        "tamis-watch" => Some("0 ended, 1 the run refuses, 2 usage error, or no run listens."),
        "tamis-top" => Some("0 ended, 2 usage error, or no run listens."),
        _ => None,
    }
}

/// Examples in addition to the help's.
pub(super) fn examples(page: &str) -> impl Iterator<Item = &'static str> {
    EXAMPLES.iter().filter(move |(name, _)| *name == page).flat_map(|(_, text)| text.lines())
}

/// Pages with their examples.
pub(super) const EXAMPLES: [(&str, &str); 41] = [
    (
        "tamis",
        "tamis demo\n\
         tamis collect fw\n\
         tamis replay fw fw.pcap\n\
         tamis why fw --packet 'in=eth0 tcp 198.51.100.7 > 10.0.0.9:22 syn'\n\
         tamis test rules.v4 cases.toml",
    ),
    ("tamis-demo", "tamis demo\ntamis demo --dir /tmp/demo"),
    (
        "tamis-why",
        "tamis why rules.v4 --packet 'in=eth0 tcp 198.51.100.7:51200 > 10.0.0.9:5432 syn'\n\
         tamis why rules.v4 office.pcap --packet 17 --near 3\n\
         tamis why rules.v4 < /var/log/kern.log",
    ),
    ("tamis-run", "tamis run live.toml --check\ntamis run live.toml"),
    ("tamis-top", "tamis top\ntamis top --once --size 120x40"),
    ("tamis-doctor", "tamis doctor\ntamis doctor live.toml"),
    ("tamis-ctl-status", "tamis ctl status\ntamis ctl --socket control.sock --json status"),
    ("tamis-ctl-counters", "tamis ctl counters\ntamis ctl counters --save"),
    (
        "tamis-ctl-apply",
        "tamis ctl apply rules.v4 --dry-run\ntamis ctl apply rules.v4 --confirm 60",
    ),
    ("tamis-ctl-rollback", "tamis ctl rollback\ntamis ctl rollback 12"),
    ("tamis-ctl-confirm", "tamis ctl apply rules.v4 --confirm 60 && tamis ctl confirm"),
    ("tamis-ctl-get", "tamis ctl get\ntamis ctl get 12"),
    ("tamis-ctl-log", "tamis ctl log"),
    ("tamis-ctl-ban", "tamis ctl ban 192.0.2.7\ntamis ctl ban --file addresses.txt"),
    ("tamis-ctl-unban", "tamis ctl unban 192.0.2.7"),
    ("tamis-ctl-accept", "tamis ctl accept 192.0.2.0/24 10.0.0.5"),
    ("tamis-ctl-deny", "tamis ctl deny 0.0.0.0/0 10.0.0.5"),
    ("tamis-ctl-bans", "tamis ctl bans"),
    ("tamis-ctl-sets-add", "tamis ctl sets add blocked 198.51.100.0/24"),
    ("tamis-ctl-sets-del", "tamis ctl sets del blocked 198.51.100.0/24"),
    ("tamis-ctl-sets-flush", "tamis ctl sets flush blocked"),
    ("tamis-ctl-sets-list", "tamis ctl sets list\ntamis ctl sets list blocked"),
    ("tamis-ctl-sets-restore", "tamis ctl sets restore sets.save"),
    ("tamis-ctl-sets-swap", "tamis ctl sets swap blocked blocked-new"),
    ("tamis-ctl-conntrack-list", "tamis ctl conntrack list"),
    ("tamis-ctl-conntrack-delete", "tamis ctl conntrack delete --src 192.0.2.7"),
    ("tamis-ctl-conntrack-flush", "tamis ctl conntrack flush"),
    ("tamis-ctl-drops", "tamis ctl drops"),
    ("tamis-ctl-talkers", "tamis ctl talkers"),
    ("tamis-ctl-capture", "tamis ctl capture drop.pcapng --count 10 reason policy"),
    ("tamis-ctl-snapshot", "tamis ctl snapshot now && tamis why now drop.pcapng --packet 1"),
    ("tamis-ctl-shadow", "tamis ctl shadow new.v4\ntamis ctl shadow\ntamis ctl shadow off"),
    ("tamis-ctl-promote", "tamis ctl shadow new.v4 && tamis ctl promote"),
    ("tamis-ctl-stop", "tamis ctl stop"),
    ("tamis-tunnel-pubkey", "tamis tunnel pubkey < office.key"),
    ("tamis-tunnel-down", "tamis tunnel down office"),
    ("tamis-tunnel-status", "tamis tunnel status\ntamis tunnel status office"),
    ("tamis-tunnel-peers", "tamis tunnel peers office"),
    ("tamis-tunnel-remove-peer", "tamis tunnel remove-peer office alice"),
    ("tamis-tunnel-demo", "tamis tunnel demo"),
    ("tamis-man", "tamis man ~/.local/share/man/man1 && man tamis-replay"),
];

/// The folder of a host, wherever rules are taken.
const HOST: (&str, &str) = (
    "HOST/",
    "What tamis collect writes: iptables.save, ip6tables.save, arptables.save and ebtables.save (rules), ipset.save, \
     conntrack.txt, routes.txt, rule.txt, links.txt, addresses.txt, sysctl.txt and others, each as the host's own \
     programs print it. Every file but one of rules is optional.",
);
/// Where a run listens.
const SOCKET: (&str, &str) = (
    "/run/tamis/control.sock",
    "The control socket of a run, unless --socket or the run's configuration names another.",
);

/// Files of a command, and what they are.
pub(super) fn files(page: &str) -> &'static [(&'static str, &'static str)] {
    match page {
        "tamis-replay" | "tamis-why" | "tamis-collect" => &[HOST],
        "tamis-test" => {
            &[HOST, ("CASES.toml", "Packet specs, and what the rules are to do with them.")]
        }
        "tamis-demo" => &[
            ("demo-rules.v4, demo-office.pcap", "The rules and the capture of the demonstration."),
            ("demo-report.html", "Its report, as a page that needs nothing else."),
        ],
        "tamis-run" => &[
            (
                "CONFIG.toml",
                "Ports, wires and rules. Files that it names lie beside it unless their paths are absolute.",
            ),
            SOCKET,
        ],
        "tamis-top" | "tamis-watch" => &[SOCKET],
        page if page.starts_with("tamis-ctl") => &[SOCKET],
        _ => &[],
    }
}
