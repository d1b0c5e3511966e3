//! Exchanges of the RFCs, what routers leave out, and anything at all.

use proptest::prelude::*;

use super::*;

const NONCE: [u8; 12] = *b"a-nonce-of-1";
const INNER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 1, 0, 2), 51_820);
const ROUTER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

fn asking() -> PortMapping {
    let mut mapping = PortMapping::new(NONCE);
    mapping.set_inner(Some(INNER), 0);
    mapping
}

/// The only datagram that is due.
fn one(mapping: &mut PortMapping, now: u64) -> Vec<u8> {
    let mut requests = mapping.requests(now);
    assert_eq!(requests.len(), 1);
    requests.remove(0)
}

/// What a server of PCP answers to a request.
fn answered(request: &[u8], result: u8, lifetime: u32, port: u16) -> Vec<u8> {
    let mut answer = request.to_vec();
    answer[1] |= 0x80;
    answer[3] = result;
    answer[4..8].copy_from_slice(&lifetime.to_be_bytes());
    answer[8..24].fill(0);
    answer[42..44].copy_from_slice(&port.to_be_bytes());
    answer[44..60].copy_from_slice(&ROUTER.to_ipv6_mapped().octets());
    answer
}

/// What a server of NAT-PMP answers: its address, and a port.
fn answers_of_nat_pmp(port: u16) -> [Vec<u8>; 2] {
    let head = |opcode| vec![0, opcode, 0, 0, 0, 0, 0, 9];
    let address = [head(128), ROUTER.octets().to_vec()].concat();
    let ports = [INNER.port().to_be_bytes(), port.to_be_bytes()].concat();
    [address, [head(129), ports, 3_600_u32.to_be_bytes().to_vec()].concat()]
}

#[test]
fn a_router_with_pcp_maps_a_port_and_keeps_it() {
    let mut mapping = asking();
    let request = one(&mut mapping, 0);
    assert_eq!(request.len(), 60);
    assert_eq!(request[..8], [2, 1, 0, 0, 0, 0, 0x1c, 0x20]);
    assert_eq!(request[8..24], INNER.ip().to_ipv6_mapped().octets());
    assert_eq!((&request[24..36], &request[36..40]), (&NONCE[..], &[17, 0, 0, 0][..]));
    assert_eq!((&request[40..42], &request[42..44]), (&[0xca, 0x6c][..], &[0xca, 0x6c][..]));
    assert!(mapping.requests(SECOND / 8).is_empty() && mapping.outer(0).is_none());

    mapping.receive(&answered(&request, 0, 600, 40_000), SECOND);
    let outer = SocketAddrV4::new(ROUTER, 40_000);
    assert_eq!(mapping.outer(SECOND), Some(outer));
    assert!(mapping.requests(300 * SECOND).is_empty());
    // At half of its lifetime the same one is asked for.
    let again = one(&mut mapping, 301 * SECOND);
    assert_eq!(
        (&again[42..44], &again[44..60]),
        (&40_000_u16.to_be_bytes()[..], &ROUTER.to_ipv6_mapped().octets()[..])
    );
    assert_eq!((mapping.outer(600 * SECOND), mapping.outer(601 * SECOND)), (Some(outer), None));
    // It ends with a lifetime of 0.
    let farewell = mapping.farewell();
    assert_eq!(
        (farewell.len(), &farewell[0][4..8], &farewell[0][24..36]),
        (1, &[0; 4][..], &NONCE[..])
    );
}

#[test]
fn a_router_without_pcp_is_asked_by_nat_pmp() {
    for says_so in [true, false] {
        let mut mapping = asking();
        let mut now = 0;
        if says_so {
            one(&mut mapping, now);
            mapping.receive(&[0, 0x81, 0, 1, 0, 0, 0, 9], now);
        } else {
            for (wait, at) in [(0, 0), (250, 250), (500, 750), (1_000, 1_750)] {
                now += wait * SECOND / 1_000;
                assert_eq!(now, at * SECOND / 1_000);
                assert_eq!(one(&mut mapping, now).len(), 60);
                assert!(mapping.requests(now).is_empty());
            }
            now += 2 * SECOND;
        }
        let map = [0, 1, 0, 0, 0xca, 0x6c, 0xca, 0x6c, 0, 0, 0x1c, 0x20].to_vec();
        assert_eq!(mapping.requests(now), [vec![0, 0], map]);
        let [address, port] = answers_of_nat_pmp(7_000);
        // The port without the address says nothing.
        mapping.receive(&port, now);
        assert_eq!(mapping.outer(now), None);
        mapping.receive(&address, now);
        mapping.receive(&port, now);
        assert_eq!(mapping.outer(now), Some(SocketAddrV4::new(ROUTER, 7_000)));
        let farewell = mapping.farewell();
        assert_eq!(farewell[1], [0, 1, 0, 0, 0xca, 0x6c, 0, 0, 0, 0, 0, 0]);
    }
}

#[test]
fn a_router_that_says_nothing_is_asked_again_after_a_while() {
    let mut mapping = asking();
    let mut asked = Vec::new();
    for tenth in 0..6_200 {
        let now = tenth * SECOND / 10;
        asked.extend(mapping.requests(now).iter().map(|request| (tenth, request.len())));
    }
    let lengths: Vec<usize> = asked.iter().map(|(_, length)| *length).collect();
    let [pcp, nat_pmp] = [[60; 4].to_vec(), [2, 12].repeat(4)];
    assert_eq!(lengths, [pcp.clone(), nat_pmp.clone(), pcp, nat_pmp].concat());
    let rest = asked.windows(2).map(|pair| pair[1].0 - pair[0].0).max();
    assert_eq!(rest, Some(6_000 + 20), "in tenths of a second");
    assert!(mapping.farewell().is_empty());
}

#[test]
fn a_refusal_ends_the_asking_and_not_the_mapping() {
    let mut mapping = asking();
    let request = one(&mut mapping, 0);
    mapping.receive(&answered(&request, 0, 600, 40_000), 0);
    let again = one(&mut mapping, 300 * SECOND);
    mapping.receive(&answered(&again, 2, 30, 0), 300 * SECOND);
    assert!(mapping.outer(599 * SECOND).is_some() && mapping.requests(899 * SECOND).is_empty());
    assert_eq!(one(&mut mapping, 900 * SECOND).len(), 60);
}

#[test]
fn answers_to_others_and_answers_without_an_address_map_nothing() {
    let mut mapping = asking();
    let request = one(&mut mapping, 0);
    for byte in [24, 36, 41] {
        let mut other = answered(&request, 0, 600, 40_000);
        other[byte] ^= 1;
        mapping.receive(&other, 0);
        assert_eq!(mapping.outer(0), None, "byte {byte}");
    }
    let mut none = answered(&request, 0, 600, 40_000);
    none[56..60].fill(0);
    mapping.receive(&none, 0);
    assert_eq!(mapping.outer(0), None);
    // By then nothing was asked.
    mapping.receive(&answered(&request, 0, 600, 40_000), 0);
    assert_eq!(mapping.outer(0), None);
}

#[test]
fn another_address_of_the_node_begins_anew() {
    let mut mapping = asking();
    let request = one(&mut mapping, 0);
    mapping.receive(&answered(&request, 0, 600, 40_000), 0);
    mapping.set_inner(Some(INNER), SECOND);
    assert!(mapping.outer(SECOND).is_some(), "it is the same");
    let other = SocketAddrV4::new(Ipv4Addr::new(10, 2, 0, 2), 51_820);
    mapping.set_inner(Some(other), SECOND);
    assert_eq!(mapping.outer(SECOND), None);
    assert_eq!(one(&mut mapping, SECOND)[8..24], other.ip().to_ipv6_mapped().octets());
    mapping.set_inner(None, SECOND);
    assert!(mapping.requests(3_600 * SECOND).is_empty());
}

proptest! {
    /// Nothing but an answer with the nonce maps a port by PCP, and what it answers is bounded in number.
    #[test]
    fn any_answer_is_taken(answers in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..70), 0..3u8), 0..40)) {
        let mut mapping = asking();
        let mut requests = 0;
        for (second, (mut answer, kind)) in answers.into_iter().enumerate() {
            let now = second as u64 * SECOND;
            requests += mapping.requests(now).len();
            let head: &[u8] = match kind {
                0 => &[2, 0x81, 0, 0],
                1 => &[0, 129, 0, 0],
                _ => &[],
            };
            let length = head.len().min(answer.len());
            answer[..length].copy_from_slice(&head[..length]);
            let is_ours = answer.get(24..36) == Some(&NONCE[..]);
            mapping.receive(&answer, now);
            prop_assert!(mapping.protocol == Protocol::NatPmp || mapping.outer(now).is_none() || is_ours);
        }
        prop_assert!(requests <= 80);
    }
}
