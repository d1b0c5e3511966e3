//! The name that a request is addressed to: its Host field.
//!
//! Contract: an address, `localhost`, or a name of the configuration. A browser that was led here by a foreign name
//! (DNS rebinding) sends that name, and the page is not for the site that made it.
//!
//! Source: RFC 9110, 7.2; RFC 9112, 3.2.

use std::net::IpAddr;

/// The answer to requests for other hosts.
pub(super) const EXPECTED: &str = "expected an address, localhost or a name of [metrics] names (of a tunnel: metrics_names) in the field Host\n";

/// Whether the head of a request is addressed to this page.
pub(super) fn is_ours(head: &[u8], names: &[String]) -> bool {
    let mut hosts = head.split(|byte| *byte == b'\n').skip(1).filter_map(|line| {
        let (name, value) = std::str::from_utf8(line).ok()?.split_once(':')?;
        name.eq_ignore_ascii_case("host").then_some(value.trim())
    });
    // A request without the field came from no browser: each sends one.
    let Some(host) = hosts.next() else { return true };
    hosts.next().is_none() && is_name_of(host, names)
}

fn is_name_of(host: &str, names: &[String]) -> bool {
    if let Some((address, _)) = host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        return address.parse::<IpAddr>().is_ok();
    }
    let name = host.split_once(':').map_or(host, |(name, _)| name);
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_it = |known: &str| name.eq_ignore_ascii_case(known);
    name.parse::<IpAddr>().is_ok() || is_it("localhost") || names.iter().any(|known| is_it(known))
}

#[cfg(test)]
mod tests {
    #[test]
    fn addresses_and_own_names_are_ours_and_no_others() {
        let names = ["fw.example".to_owned()];
        let is_ours = |host: &str| {
            let head = format!("GET /metrics HTTP/1.1\r\nAccept: */*\r\nhOST: {host}\r\n\r\n");
            super::is_ours(head.as_bytes(), &names)
        };
        let ours = ["127.0.0.1:9469", "[::1]:9469", "10.0.0.1", "localhost", "LOCALHOST:1"];
        for host in ours.into_iter().chain(["fw.example:9469", "FW.example."]) {
            assert!(is_ours(host), "{host}");
        }
        for host in
            ["evil.example", "fw.example.evil", "localhost.evil:9469", "", "[evil]", "a@127.0.0.1"]
        {
            assert!(!is_ours(host), "{host}");
        }
        assert!(!is_ours("127.0.0.1\r\nHost: evil.example"));
        assert!(super::is_ours(b"GET /metrics HTTP/1.0\r\n\r\n", &names));
    }
}
