//! Ports by number and by name, and ranges of them.
//!
//! Source: iptables `xtoptions.c`, services(5).

use super::u16;

/// A port number or service name.
#[must_use]
pub fn port(text: &str) -> Option<u16> {
    u16(text).or_else(|| service(text))
}

/// An inclusive port range `a`, `a:b`, `a:`, `:b`, which must not run backwards.
#[must_use]
pub(crate) fn port_range(text: &str) -> Option<(u16, u16)> {
    port_ends(text).filter(|(low, high)| low <= high)
}

/// The ends of a port range, in whatever order.
#[must_use]
pub(crate) fn port_ends(text: &str) -> Option<(u16, u16)> {
    Some(match text.split_once(':') {
        None => {
            let value = port(text)?;
            (value, value)
        }
        Some((low, high)) => (
            if low.is_empty() { 0 } else { port(low)? },
            if high.is_empty() { u16::MAX } else { port(high)? },
        ),
    })
}

/// Service names that hand-written rules use. The save tools print numbers, so this is a courtesy: the names come from
/// `/etc/services` and are the same on every system.
const SERVICES: &[(&str, u16)] = &[
    ("echo", 7),
    ("discard", 9),
    ("daytime", 13),
    ("ftp-data", 20),
    ("ftp", 21),
    ("ssh", 22),
    ("telnet", 23),
    ("smtp", 25),
    ("time", 37),
    ("whois", 43),
    ("domain", 53),
    ("bootps", 67),
    ("bootpc", 68),
    ("tftp", 69),
    ("gopher", 70),
    ("finger", 79),
    ("http", 80),
    ("kerberos", 88),
    ("pop3", 110),
    ("sunrpc", 111),
    ("auth", 113),
    ("nntp", 119),
    ("ntp", 123),
    ("netbios-ns", 137),
    ("netbios-dgm", 138),
    ("netbios-ssn", 139),
    ("imap2", 143),
    ("imap", 143),
    ("snmp", 161),
    ("snmp-trap", 162),
    ("bgp", 179),
    ("irc", 194),
    ("ldap", 389),
    ("https", 443),
    ("microsoft-ds", 445),
    ("submissions", 465),
    ("isakmp", 500),
    ("syslog", 514),
    ("printer", 515),
    ("rip", 520),
    ("dhcpv6-client", 546),
    ("dhcpv6-server", 547),
    ("submission", 587),
    ("ipp", 631),
    ("ldaps", 636),
    ("domain-s", 853),
    ("rsync", 873),
    ("ftps", 990),
    ("imaps", 993),
    ("pop3s", 995),
    ("socks", 1080),
    ("openvpn", 1194),
    ("ms-sql-s", 1433),
    ("l2f", 1701),
    ("radius", 1812),
    ("radius-acct", 1813),
    ("nfs", 2049),
    ("iscsi-target", 3260),
    ("mysql", 3306),
    ("ipsec-nat-t", 4500),
    ("sip", 5060),
    ("sip-tls", 5061),
    ("xmpp-client", 5222),
    ("xmpp-server", 5269),
    ("mdns", 5353),
    ("postgresql", 5432),
    ("x11", 6000),
    ("redis", 6379),
    ("http-alt", 8080),
    ("git", 9418),
    ("zabbix-agent", 10050),
];

/// The port of a service that has the same name on every system.
#[must_use]
pub fn service(name: &str) -> Option<u16> {
    SERVICES.iter().find(|(known, _)| *known == name).map(|(_, port)| *port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_ranges_may_be_open() {
        assert_eq!(port_range("80"), Some((80, 80)));
        assert_eq!(port_range(":"), Some((0, 65535)));
        assert_eq!(port_range("1024:"), Some((1024, 65535)));
        assert_eq!(port_range("4:3"), None);
        assert_eq!(port_range("ssh:http"), Some((22, 80)));
    }
}
