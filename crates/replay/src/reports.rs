//! Groups that a host reports to be in, as its own frames show: it may have joined them after its folder was collected.
//!
//! Contract: [`Joined`] is bounded: beyond [`MOST`] groups the host may be in any.
//!
//! Source: RFC 2236 (IGMPv2), RFC 3376 (IGMPv3), RFC 2710 (MLD), RFC 3810 (MLDv2).

use std::collections::BTreeSet;
use std::net::IpAddr;

use packet::{Headers, L4, icmpv6};

const IGMP: u8 = 2;
const IGMP_V1_REPORT: u8 = 0x12;
const IGMP_V2_REPORT: u8 = 0x16;
const IGMP_V3_REPORT: u8 = 0x22;
const MLD_REPORT: u8 = 131;
const MLD_V2_REPORT: u8 = 143;
/// Bytes before the records of a report of IGMPv3 or MLDv2, and before the group in each.
const REPORT_HEADER: usize = 8;
const RECORD_HEADER: usize = 4;
/// The record of a group of which the host wants nothing more.
const LEAVES: u8 = 3;

/// Groups of which more are not told apart.
const MOST: usize = 4096;

/// The groups that the host reported to be in, with the device on which it did.
#[derive(Debug, Default)]
pub(crate) struct Joined(BTreeSet<(u32, IpAddr)>);

impl Joined {
    /// Notes the groups that a frame reports which left by this device, if the host itself is its sender.
    pub(crate) fn note(
        &mut self,
        device: u32,
        bytes: &[u8],
        headers: &Headers,
        is_own: impl FnOnce() -> bool,
    ) {
        if !is_report(headers) || !is_own() {
            return;
        }
        of(bytes, headers, |group| {
            if self.0.len() < MOST {
                self.0.insert((device, group));
            }
        });
    }

    /// Whether it reported none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the host may be in this group there, by what it reported.
    pub(crate) fn contains(&self, device: u32, group: IpAddr) -> bool {
        self.0.contains(&(device, group)) || self.0.len() >= MOST && group.is_multicast()
    }
}

/// Whether a frame may report groups.
fn is_report(headers: &Headers) -> bool {
    matches!(headers.l4, L4::Upper(upper) if matches!(upper.protocol, IGMP | icmpv6::PROTOCOL))
}

/// Tells of each group that a frame reports.
fn of(bytes: &[u8], headers: &Headers, mut tell: impl FnMut(IpAddr)) {
    let L4::Upper(upper) = headers.l4 else { return };
    let Some(message) = bytes.get(upper.offset..headers.end.min(bytes.len())) else { return };
    match (upper.protocol, message.first()) {
        (IGMP, Some(&(IGMP_V1_REPORT | IGMP_V2_REPORT))) => {
            message.get(4..8).and_then(group::<4>).into_iter().for_each(tell);
        }
        (IGMP, Some(&IGMP_V3_REPORT)) => records::<4>(message, &mut tell),
        (icmpv6::PROTOCOL, Some(&MLD_REPORT)) => {
            message.get(8..24).and_then(group::<16>).into_iter().for_each(tell);
        }
        (icmpv6::PROTOCOL, Some(&MLD_V2_REPORT)) => records::<16>(message, &mut tell),
        _ => {}
    }
}

fn group<const LEN: usize>(bytes: &[u8]) -> Option<IpAddr>
where
    IpAddr: From<[u8; LEN]>,
{
    Some(IpAddr::from(*bytes.first_chunk::<LEN>()?))
}

/// Tells of the group of each record.
fn records<const LEN: usize>(message: &[u8], tell: &mut impl FnMut(IpAddr))
where
    IpAddr: From<[u8; LEN]>,
{
    let mut rest = message.get(REPORT_HEADER..).unwrap_or_default();
    while let Some([kind, words, sources @ ..]) = rest.first_chunk::<RECORD_HEADER>() {
        let Some(group) = rest.get(RECORD_HEADER..).and_then(group::<LEN>) else { return };
        if *kind != LEAVES {
            tell(group);
        }
        let sources = usize::from(u16::from_be_bytes(*sources));
        let len = RECORD_HEADER + LEN + LEN * sources + 4 * usize::from(*words);
        rest = rest.get(len..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use packet::{Checksums, Link, parse};

    use super::*;

    fn told(protocol: u8, message: &[u8]) -> Vec<String> {
        let mut bytes = match protocol {
            IGMP => {
                [&[0x45, 0, 0, 0, 0, 0, 0, 0, 1, IGMP, 0, 0, 10, 0, 0, 1, 224, 0, 0, 22], message]
                    .concat()
            }
            _ => {
                let head = [0x60, 0, 0, 0, 0, message.len() as u8, protocol, 1];
                [&head[..], &[0xfe; 32], message].concat()
            }
        };
        if protocol == IGMP {
            bytes[3] = bytes.len() as u8;
        }
        let headers = parse(Link::Raw, &bytes, bytes.len(), Checksums::Ignore);
        let mut groups = Vec::new();
        of(&bytes, &headers, |group| groups.push(group.to_string()));
        groups
    }

    #[test]
    fn groups_are_bounded_and_are_those_of_the_host() {
        let report = |group: u32| {
            let [a, b, c, d] = group.to_be_bytes();
            let mut bytes =
                vec![0x45, 0, 0, 28, 0, 0, 0, 0, 1, IGMP, 0, 0, 10, 0, 0, 1, a, b, c, d];
            bytes.extend([0x16, 0, 0, 0, a, b, c, d]);
            bytes
        };
        let first = 0xef01_0000;
        let mut joined = Joined::default();
        let mut note = |group, is_own| {
            let bytes = report(group);
            let headers = parse(Link::Raw, &bytes, bytes.len(), Checksums::Ignore);
            joined.note(1, &bytes, &headers, || is_own);
            joined.0.len()
        };
        assert_eq!(note(first, false), 0, "another host's");
        let lens: Vec<usize> =
            (first..first + 2 * MOST as u32).map(|group| note(group, true)).collect();
        assert_eq!((lens[0], lens.last()), (1, Some(&MOST)));
        let [unnoted, unicast] = [[239, 9, 9, 9], [10, 0, 0, 9]].map(IpAddr::from);
        assert!(joined.contains(2, unnoted) && !joined.contains(1, unicast), "any group may be");
        let mut few = Joined::default();
        let bytes = report(first);
        let headers = parse(Link::Raw, &bytes, bytes.len(), Checksums::Ignore);
        few.note(1, &bytes, &headers, || true);
        let group = IpAddr::from(first.to_be_bytes());
        assert!(few.contains(1, group) && !few.contains(2, group) && !few.contains(1, unnoted));
    }

    #[test]
    fn reports_name_the_groups_that_a_host_is_in() {
        assert_eq!(told(IGMP, &[0x16, 0, 0, 0, 239, 1, 1, 1]), ["239.1.1.1"]);
        let record = |kind, last, sources: u8| [kind, 0, 0, sources, 239, 1, 1, last];
        let head = [0x22, 0, 0, 0, 0, 0, 0, 3];
        let all =
            [&head[..], &record(3, 1, 0), &record(1, 2, 1), &[9; 4], &record(4, 3, 0)].concat();
        assert_eq!(told(IGMP, &all), ["239.1.1.2", "239.1.1.3"]);
        assert!(told(IGMP, &all[..12]).is_empty(), "cut");
        let group = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xfb];
        let report = [&[143, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0], &group[..]].concat();
        assert_eq!(told(icmpv6::PROTOCOL, &report), ["ff02::fb"]);
        assert!(told(icmpv6::PROTOCOL, &[135; 24]).is_empty(), "another message");
    }
}
