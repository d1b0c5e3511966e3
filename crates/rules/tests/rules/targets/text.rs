//! What targets print and what they refuse.

use rules::model::Family::{self, Ipv4, Ipv6};
use rules::save::print_rule;

use super::ruleset;

fn printed(family: Family, table: &str, rule: &str) -> Result<String, String> {
    let rules = ruleset(family, table, rule)?;
    let chain = &rules.tables[0].chains[0];
    Ok(print_rule(family, &rules.tables[0], chain, &chain.rules[0]))
}

/// Family, table, rule, and its canonical text, which must print as itself.
const TAKEN: &[(Family, &str, &str, &str)] = &[
    (Ipv4, "filter", "-A INPUT -j AUDIT --type DROP", "-A INPUT -j AUDIT --type drop"),
    (
        Ipv4,
        "mangle",
        "-A OUTPUT -j CHECKSUM --checksum-fill",
        "-A OUTPUT -j CHECKSUM --checksum-fill",
    ),
    (
        Ipv6,
        "mangle",
        "-A FORWARD -j CLASSIFY --set-class 0x1:aB",
        "-A FORWARD -j CLASSIFY --set-class 0001:00ab",
    ),
    (
        Ipv4,
        "mangle",
        "-A INPUT -j CONNMARK --set-mark 0x1/0xf0",
        "-A INPUT -j CONNMARK --set-xmark 0x1/0xf1",
    ),
    (
        Ipv4,
        "mangle",
        "-A INPUT -j CONNMARK --save-mark --mask 0xff --left-shift-mark 4",
        "-A INPUT -j CONNMARK --save-mark --nfmask 0xff --ctmask 0xff --left-shift-mark 4",
    ),
    (Ipv4, "security", "-A INPUT -j CONNSECMARK --save", "-A INPUT -j CONNSECMARK --save"),
    (
        Ipv4,
        "security",
        "-A INPUT -j SECMARK --selctx u:r_t:s0",
        "-A INPUT -j SECMARK --selctx u:r_t:s0",
    ),
    (
        Ipv4,
        "raw",
        "-A PREROUTING -p udp -j CT --ctevents mark,new --zone-orig 7 --helper tftp",
        "-A PREROUTING -p udp -j CT --helper tftp --ctevents new,mark --zone-orig 7",
    ),
    (Ipv4, "raw", "-A OUTPUT -j CT --zone mark", "-A OUTPUT -j CT --zone mark"),
    (Ipv6, "raw", "-A OUTPUT -j NOTRACK", "-A OUTPUT -j NOTRACK"),
    (Ipv6, "raw", "-A OUTPUT -j TRACE", "-A OUTPUT -j TRACE"),
    (
        Ipv4,
        "mangle",
        "-A INPUT -j HMARK --hmark-tuple src,dp --hmark-mod 5 --hmark-rnd 0xa",
        "-A INPUT -j HMARK --hmark-src-prefix 32 --hmark-dport-mask 0xffff --hmark-rnd 0x0000000a --hmark-mod 5",
    ),
    (
        Ipv4,
        "filter",
        "-A INPUT -j IDLETIMER --label eth0_up --timeout 9",
        "-A INPUT -j IDLETIMER --timeout 9 --label eth0_up",
    ),
    (
        Ipv4,
        "filter",
        "-A INPUT -j LED --led-delay INF --led-trigger-id x",
        "-A INPUT -j LED --led-trigger-id \"x\" --led-delay inf",
    ),
    (Ipv4, "filter", "-A INPUT -j QUEUE", "-A INPUT -j QUEUE"),
    (
        Ipv4,
        "filter",
        "-A INPUT -j NFQUEUE --queue-bypass --queue-balance 3:",
        "-A INPUT -j NFQUEUE --queue-balance 3:65534 --queue-bypass",
    ),
    (
        Ipv4,
        "filter",
        "-A INPUT -j RATEEST --rateest-name r --rateest-interval 0.9s --rateest-ewmalog 5s",
        "-A INPUT -j RATEEST --rateest-name r --rateest-interval 1.0s --rateest-ewmalog 4.0s",
    ),
    (
        Ipv4,
        "mangle",
        "-A FORWARD -j SET --map-mark --map-set m dst --timeout 5 --add-set a src,dst --exist",
        "-A FORWARD -j SET --add-set a src,dst --exist --timeout 5 --map-set m dst --map-mark",
    ),
    (
        Ipv4,
        "filter",
        "-A FORWARD -p tcp -j SYNPROXY --mss 1460 --ecn --sack-perm",
        "-A FORWARD -p tcp -j SYNPROXY --sack-perm --mss 1460 --ecn",
    ),
    (
        Ipv4,
        "mangle",
        "-A INPUT -j TEE --oif e0 --gateway 10.0.0.9",
        "-A INPUT -j TEE --gateway 10.0.0.9 --oif e0",
    ),
    (
        Ipv6,
        "mangle",
        "-A PREROUTING -p tcp -j TPROXY --on-port http",
        "-A PREROUTING -p tcp -j TPROXY --on-port 80 --on-ip :: --tproxy-mark 0x0/0x0",
    ),
    (
        Ipv4,
        "nat",
        "-A PREROUTING -p tcp -j DNAT --persistent --to-destination 10.0.0.1-10.0.0.9:80-90/http",
        "-A PREROUTING -p tcp -j DNAT --to-destination 10.0.0.1-10.0.0.9:80-90/80 --persistent",
    ),
    (
        Ipv6,
        "nat",
        "-A OUTPUT -p udp -j DNAT --to [fd00::1]:53",
        "-A OUTPUT -p udp -j DNAT --to-destination [fd00::1]:53",
    ),
    (
        Ipv4,
        "nat",
        "-A POSTROUTING -p tcp -j SNAT --to-source :1024-2048",
        "-A POSTROUTING -p tcp -j SNAT --to-source :1024-2048",
    ),
    (
        Ipv4,
        "nat",
        "-A POSTROUTING -p tcp -j MASQUERADE --random-fully --to-ports 9-10 --random",
        "-A POSTROUTING -p tcp -j MASQUERADE --to-ports 9-10 --random --random-fully",
    ),
    (
        Ipv6,
        "nat",
        "-A PREROUTING -p tcp -j REDIRECT --to-port ssh",
        "-A PREROUTING -p tcp -j REDIRECT --to-ports 22",
    ),
    (Ipv4, "nat", "-A INPUT -j NETMAP --to 10.1.2.3/16", "-A INPUT -j NETMAP --to 10.1.0.0/16"),
    (
        Ipv6,
        "mangle",
        "-A INPUT -j SNPT --dst-pfx fd01::/48 --src-pfx 2001:db8::/56",
        "-A INPUT -j SNPT --src-pfx 2001:db8::/56 --dst-pfx fd01::/48",
    ),
    (
        Ipv4,
        "filter",
        "-A INPUT -j ULOG --ulog-qthreshold 1 --ulog-nlgroup 3 --ulog-prefix \"a b\"",
        "-A INPUT -j ULOG --ulog-prefix \"a b\" --ulog-nlgroup 3",
    ),
    (
        Ipv4,
        "filter",
        "-A INPUT -j CLUSTERIP --new --hashmode sourceip --clustermac 01:00:5e:0a:0b:0c --total-nodes 2 --local-node 1",
        "-A INPUT -j CLUSTERIP --new --hashmode sourceip --clustermac 01:00:5E:0A:0B:0C --total-nodes 2 --local-node 1 --hash-init 0",
    ),
];

#[test]
fn canonical_text_is_that_of_the_tool_and_prints_as_itself() {
    for (family, table, rule, canonical) in TAKEN {
        assert_eq!(printed(*family, table, rule).as_deref(), Ok(*canonical), "{rule}");
        assert_eq!(printed(*family, table, canonical).as_deref(), Ok(*canonical));
    }
}

/// Family, table, rule, and a piece of what the error must say.
const REFUSED: &[(Family, &str, &str, &str)] = &[
    (Ipv4, "filter", "-A INPUT -j CHECKSUM --checksum-fill", "table mangle"),
    (
        Ipv4,
        "mangle",
        "-A INPUT -j CLASSIFY --set-class 1:2",
        "chain FORWARD or OUTPUT or POSTROUTING",
    ),
    (Ipv4, "mangle", "-A FORWARD -j CLASSIFY --set-class 1:10000", "hexadecimal"),
    (Ipv4, "mangle", "-A INPUT -j CONNMARK --ctmask 1", "one of --set-xmark"),
    (Ipv4, "mangle", "-A INPUT -j CONNMARK --save-mark --restore-mark", "only one of"),
    (Ipv4, "mangle", "-A INPUT -j CONNMARK --save-mark --mask 1 --nfmask 1", "only one of"),
    (Ipv4, "mangle", "-A INPUT -j CONNMARK --save-mark --left-shift-mark 32", "bits 0-31"),
    (Ipv4, "filter", "-A INPUT -j CONNSECMARK --save", "table mangle or security"),
    (Ipv4, "filter", "-A INPUT -j CT --notrack", "table raw"),
    (Ipv4, "raw", "-A PREROUTING -j CT --helper ftp", "-p PROTOCOL"),
    (Ipv4, "raw", "-A PREROUTING -j CT --ctevents new,bogus", "comma-list"),
    (Ipv4, "filter", "-A INPUT -j TRACE", "table raw"),
    (Ipv4, "mangle", "-A INPUT -j HMARK --hmark-mod 0 --hmark-rnd 1 --hmark-tuple ct", "from 1"),
    (Ipv4, "mangle", "-A INPUT -j HMARK --hmark-mod 1 --hmark-rnd 1", "--hmark-tuple"),
    (Ipv4, "filter", "-A INPUT -j IDLETIMER --timeout 0 --label x", "seconds"),
    (Ipv4, "filter", "-A INPUT -j IDLETIMER --timeout 1 --label a/b", "sysfs"),
    (Ipv4, "filter", "-A INPUT -j LED --led-trigger-id 12345678901234567", "16 bytes"),
    (Ipv4, "filter", "-A INPUT -j NFQUEUE --queue-cpu-fanout", "--queue-balance"),
    (Ipv4, "filter", "-A INPUT -j SET --add-set s left", "src and dst"),
    (Ipv4, "filter", "-A INPUT -j SET --del-set s src --exist", "--add-set"),
    (Ipv4, "filter", "-A INPUT -j SET --map-set s src --map-mark", "table mangle"),
    (Ipv4, "filter", "-A OUTPUT -p tcp -j SYNPROXY", "chain INPUT or FORWARD"),
    (Ipv4, "filter", "-A INPUT -p udp -j SYNPROXY", "-p tcp"),
    (Ipv4, "mangle", "-A INPUT -j TEE --gateway 0.0.0.0", "other than 0"),
    (Ipv4, "mangle", "-A INPUT -p tcp -j TPROXY --on-port 1", "chain PREROUTING"),
    (Ipv4, "filter", "-A INPUT -j DNAT --to-destination 10.0.0.1", "table nat"),
    (Ipv4, "nat", "-A POSTROUTING -j DNAT --to-destination 10.0.0.1", "chain PREROUTING"),
    (Ipv4, "nat", "-A PREROUTING -j DNAT --to-destination 10.0.0.1:80", "-p tcp"),
    (Ipv4, "nat", "-A PREROUTING -j DNAT --to-destination 10.1", "IPv4 address"),
    (Ipv6, "nat", "-A PREROUTING -j DNAT --to-destination 10.0.0.1", "IPv6 address"),
    (Ipv4, "nat", "-A POSTROUTING -p tcp -j SNAT --to-source 10.0.0.1:1-2/3", "without /port"),
    (Ipv4, "nat", "-A POSTROUTING -j SNAT --to-source 10.0.0.1 --to-source 10.0.0.2", "only once"),
    (Ipv4, "nat", "-A PREROUTING -j MASQUERADE", "chain POSTROUTING"),
    (Ipv6, "mangle", "-A INPUT -j SNPT --src-pfx fd00::/65 --dst-pfx fd01::/48", "prefix"),
    (Ipv6, "mangle", "-A INPUT -j SNPT --src-pfx fd00::1/48 --dst-pfx fd01::/48", "prefix"),
    (
        Ipv6,
        "mangle",
        "-A INPUT -j DNPT --src-pfx fd00::/48 --dst-pfx fd01::/48",
        "chain PREROUTING",
    ),
    (Ipv4, "filter", "-A FORWARD -j CLUSTERIP", "chain INPUT"),
    (Ipv4, "filter", "-A INPUT -j CLUSTERIP --hash-init 3", "--new"),
];

#[test]
fn what_kernel_or_tool_refuse_is_refused_with_the_reason() {
    for (family, table, rule, reason) in REFUSED {
        let error = printed(*family, table, rule).expect_err(rule);
        assert!(error.contains(reason), "{rule}: {error}");
    }
}
