//! Values of options, as they are typed. An error says what was expected.

use std::net::IpAddr;

use dataplane::Moment;
use host::{Kernel, Network, QueueVerdict, Zone};
use rules::model::Family;

/// A family of rules.
///
/// # Errors
/// It is something else: what was expected.
pub fn family(text: &str) -> Result<Family, String> {
    match Family::from_name(text) {
        Some(family) => Ok(family),
        None => Err("expected ip, ip6, arp or bridge".to_owned()),
    }
}

/// A version of Linux.
///
/// # Errors
/// It is something else: what was expected.
pub fn kernel(text: &str) -> Result<Kernel, String> {
    Kernel::parse(text).ok_or_else(|| {
        "expected a version of Linux, as `uname -r` prints it, such as 6.1.192".to_owned()
    })
}

/// What the program on a queue answers, or those on all queues that are not named.
///
/// # Errors
/// It is something else: what was expected.
pub fn queue_verdict(text: &str) -> Result<(Option<u16>, QueueVerdict), String> {
    host::parse_verdict(text).ok_or_else(|| {
        "expected accept, drop, none or unknown, or NUM=VERDICT of queue 0 to 65535".to_owned()
    })
}

/// A time zone.
///
/// # Errors
/// It is something else: what was expected.
pub fn zone(text: &str) -> Result<Zone, String> {
    Zone::parse(text).ok_or_else(|| {
        "expected UTC, an offset such as +02:00, or a time zone such as Europe/Berlin".to_owned()
    })
}

/// A network behind an interface.
///
/// # Errors
/// It is something else: what was expected.
pub fn net(text: &str) -> Result<(String, Network), String> {
    let wrong = || "expected IFACE=ADDRESS/BITS".to_owned();
    let (name, cidr) = text.split_once('=').ok_or_else(wrong)?;
    if name.is_empty() {
        return Err(wrong());
    }
    Ok((name.to_owned(), network(cidr)?))
}

/// The address of an interface.
///
/// # Errors
/// It is something else: what was expected.
pub fn addr(text: &str) -> Result<(String, IpAddr), String> {
    let wrong = || "expected IFACE=ADDRESS".to_owned();
    let (name, address) = text.split_once('=').ok_or_else(wrong)?;
    if name.is_empty() {
        return Err(wrong());
    }
    Ok((name.to_owned(), address.parse().map_err(|_| wrong())?))
}

/// A network.
///
/// # Errors
/// It is something else: what was expected.
pub fn network(text: &str) -> Result<Network, String> {
    Network::parse(text).ok_or_else(|| "expected ADDRESS or ADDRESS/BITS".to_owned())
}

/// Parses a number of connections: at least one, and no more than the table can index.
///
/// # Errors
/// It is something else: what was expected.
pub fn ct_max(text: &str) -> Result<usize, String> {
    let max: usize = text.parse().map_err(|_| "expected a number".to_owned())?;
    if (1..=1 << 24).contains(&max) { Ok(max) } else { Err("expected 1 to 16777216".to_owned()) }
}

/// Parses a number of workers: at least one, and no more than a byte can number.
///
/// # Errors
/// It is something else: what was expected.
pub fn threads(text: &str) -> Result<usize, String> {
    let threads: usize = text.parse().map_err(|_| "expected a number".to_owned())?;
    if (1..=255).contains(&threads) { Ok(threads) } else { Err("expected 1 to 255".to_owned()) }
}

/// A time.
///
/// # Errors
/// It is something else: what was expected.
pub fn moment(text: &str) -> Result<Moment, String> {
    Moment::parse(text)
        .ok_or_else(|| "expected RFC 3339 such as 2026-11-21T10:00:00Z, or +SECONDS".to_owned())
}
