//! Kinds of routers as rules of nftables, in namespaces: `pairs.txt` of the overlay's tests says what each does.

use crate::namespaces::Hosts;

/// Makes the router of a node, the first or the second, one of a kind, in place of what it was.
pub(crate) fn becomes(hosts: &Hosts, (node, number): (&str, u8), kind: &str) {
    let router = format!("r{node}");
    hosts.does(&router, "nft flush ruleset");
    let (own, carried) = (format!("198.51.{number}.1"), format!("table ip carrier{number}"));
    // A table that is not there is deleted, too.
    hosts.rules("net", &format!("{carried} {{\n}}\ndelete {carried}\n"));
    let v6 = format!("ip -6 address {{}} 2001:db8:{number}::2/64 dev eth0 nodad");
    hosts.says(node, &v6.replace("{}", "del"));
    if kind == "firewall" {
        hosts.does(node, &v6.replace("{}", "add"));
        hosts.does(node, &format!("ip -6 route replace default via 2001:db8:{number}::1"));
    }
    let base = match kind {
        "carrier" => {
            let rules = format!(
                "{carried} {{\nchain post {{\ntype nat hook postrouting priority srcnat\n\
                 ip saddr {own} oifname != \"{node}\" snat to 198.51.10{number}.1\n}}\n}}\n"
            );
            hosts.rules("net", &rules);
            "plain"
        }
        "firewall" => "random",
        kind => kind,
    };
    hosts.rules(&router, &rules(base, &own));
    if kind == "firewall" {
        hosts.rules(&router, FIREWALL);
    }
}

/// Lets every host have IPv6; nodes get addresses where their routers are firewalls.
pub(crate) fn lay_v6(hosts: &Hosts, nodes: &[&str]) {
    hosts.does("net", "sysctl -qw net.ipv6.conf.all.forwarding=1");
    for (number, node) in (1..).zip(nodes) {
        let router = format!("r{node}");
        hosts.does(&router, "sysctl -qw net.ipv6.conf.all.forwarding=1");
        let add = |host: &str, address: String, device: &str| {
            hosts.does(host, &format!("ip -6 address add {address} dev {device} nodad"));
        };
        add(&router, format!("2001:db8:{number}::1/64"), "lan");
        add(&router, format!("2001:db8:10{number}::1/64"), "wan");
        add("net", format!("2001:db8:10{number}::2/64"), node);
        hosts.does(&router, &format!("ip -6 route add default via 2001:db8:10{number}::2"));
        let back = format!("ip -6 route add 2001:db8:{number}::/64 via 2001:db8:10{number}::1");
        hosts.does("net", &back);
    }
}

const FIREWALL: &str = "table ip6 t {\nchain forward {\ntype filter hook forward priority 0; policy drop;\n\
     ct state established,related accept\niifname \"lan\" accept\nicmpv6 type { 133, 134, 135, 136 } accept\n}\n}\n";

/// What is for the router itself is dropped.
const SHUT: &str = "chain inputs {\ntype filter hook input priority 0\niifname \"wan\" drop\n}\n";

/// The rules of a kind, for a router whose address is `own`.
fn rules(kind: &str, own: &str) -> String {
    let udp = "oifname \"wan\" meta l4proto udp";
    let translates = |how: &str, more: &str| {
        format!(
            "table ip t {{\nchain post {{\ntype nat hook postrouting priority srcnat\n{how}\n\
             oifname \"wan\" masquerade\n}}\n{more}}}\n"
        )
    };
    match kind {
        "cone" => cone("inet_service", "udp sport", "udp dport", ""),
        "restricted" => {
            let (learn, look) = ("ip daddr . udp sport", "ip saddr . udp dport");
            cone("ipv4_addr . inet_service", learn, look, SHUT)
        }
        "plain" => translates("", SHUT),
        "open" => translates("", ""),
        "range" => translates(&format!("{udp} masquerade to :50000-50999"), SHUT),
        "address" => {
            let hash = "jhash ip saddr . udp sport . ip daddr mod 4096 seed 0x7 offset 20000";
            translates(&format!("{udp} snat to {own} : {hash}"), SHUT)
        }
        "sequential" => {
            let ports = (0..64).map(|at| format!("{at} : {}", 41_000 + 2 * at)).collect::<Vec<_>>();
            let map = format!("numgen inc mod 64 map {{ {} }}", ports.join(", "));
            translates(&format!("{udp} snat to {own} : {map}"), SHUT)
        }
        "random" => translates("oifname \"wan\" masquerade random", SHUT),
        "brief" => {
            let short = "ct timeout short {\nprotocol udp\nl3proto ip\n\
                         policy = { unreplied : 2, replied : 2 }\n}\n\
                         chain brief {\ntype filter hook prerouting priority mangle\n\
                         meta l4proto udp ct timeout set \"short\"\n}\n";
            translates("", &format!("{SHUT}{short}"))
        }
        "blocked" => {
            let drop =
                "chain forward {\ntype filter hook forward priority 0\nmeta l4proto udp drop\n}\n";
            translates("", &format!("{SHUT}{drop}"))
        }
        _ => panic!("{kind}"),
    }
}

/// A router that learns which of its ports are a node's, and lets in what comes for them.
fn cone(keys: &str, learn: &str, look: &str, more: &str) -> String {
    format!(
        "table ip t {{\n\
         map cone {{\ntype {keys} : ipv4_addr . inet_service\nflags dynamic,timeout\ntimeout 30s\nsize 4096\n}}\n\
         chain learn {{\ntype filter hook postrouting priority srcnat - 1\n\
         oifname \"wan\" meta l4proto udp update @cone {{ {learn} : ip saddr . udp sport }}\n}}\n\
         chain post {{\ntype nat hook postrouting priority srcnat\noifname \"wan\" masquerade\n}}\n\
         chain pre {{\ntype nat hook prerouting priority dstnat\n\
         iifname \"wan\" meta l4proto udp dnat ip to {look} map @cone\n}}\n{more}}}\n"
    )
}
