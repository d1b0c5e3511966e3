//! Messages as bytes.

use std::net::SocketAddr;

use overlay::limits::SECOND;
use overlay::{
    Body, Certifying, Claims, Device, End, Following, HEADER, Join, LONGEST, Membership, Message,
    Name, Pair, Permit, Permits, Ports, Reached, Refusal, Relaying, Router, Series, Service,
    Strangers,
};
use proptest::prelude::*;
use tunnel::PublicKey;

use crate::world::signer;

fn name() -> impl Strategy<Value = Name> {
    "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?".prop_map(|text| text.parse().unwrap())
}

fn place() -> impl Strategy<Value = SocketAddr> {
    any::<SocketAddr>().prop_map(|it| SocketAddr::new(it.ip(), it.port()))
}

fn places(most: usize) -> impl Strategy<Value = Vec<SocketAddr>> {
    proptest::collection::vec(place(), 0..=most)
}

fn service() -> impl Strategy<Value = Service> {
    let ports = (any::<u16>(), any::<u16>(), any::<bool>());
    let ranged = ports.prop_map(|(one, other, is_tcp)| {
        let (first, last) = (one.min(other), one.max(other));
        format!("{}/{first}-{last}", if is_tcp { "tcp" } else { "udp" }).parse().unwrap()
    });
    prop_oneof![4 => ranged, 1 => Just("icmp".parse().unwrap())]
}

fn permits() -> impl Strategy<Value = Permits> {
    let line = (1..4_u8, proptest::collection::vec(service(), 0..3), "[a-z0-9>*/ -]{0,40}");
    let line = line.prop_map(|(bits, services, text)| {
        let (inward, outward) = (bits & 1 != 0, bits & 2 != 0);
        Permit { inward, outward, services, text }
    });
    (any::<u64>(), proptest::collection::vec(line, 0..8))
        .prop_map(|(version, lines)| Permits { version, lines })
}

fn series() -> impl Strategy<Value = Series> {
    let numbers = (any::<u64>(), any::<u64>(), any::<u64>());
    numbers.prop_map(|(by, to, number)| Series { by, to, number })
}

/// What a directory and a relay apart say to each other.
fn order() -> impl Strategy<Value = Body> {
    let pair = (name(), name()).prop_filter("two nodes", |(one, other)| one != other);
    let pair = pair.prop_map(|(one, other)| Pair::of(&one, &other)).boxed();
    let key = any::<[u8; 32]>().prop_map(PublicKey::new).boxed();
    let ends = (pair.clone(), key.clone(), key, places(1), places(1));
    let numbers = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>());
    prop_oneof![
        (series(), numbers, any::<u16>(), any::<u16>()).prop_map(|(series, it, first, last)| {
            let (started, done, counts) = (it.0, it.1, (it.2, it.3));
            Body::Relays(Relaying { started, series, done, ports: (first, last), counts })
        }),
        (series(), any::<u64>()).prop_map(|(series, whole)| Body::Relayed { series, whole }),
        (series(), any::<u16>(), ends).prop_map(|(series, port, (pair, one, other, at, to))| {
            let first = End { name: pair.0, key: one, at: at.first().copied() };
            let second = End { name: pair.1, key: other, at: to.first().copied() };
            Body::Join(Box::new(Join { series, port, ends: [first, second] }))
        }),
        (series(), pair).prop_map(|(series, pair)| Body::Part { series, pair }),
    ]
}

/// What an authority apart and a directory say to each other.
fn of_authority() -> impl Strategy<Value = Body> {
    let numbers = (any::<u64>(), any::<u64>());
    let pools = (any::<u32>(), 0..=32_u8, any::<u128>(), 0..=128_u8);
    let device = (name(), any::<[u8; 32]>(), any::<u32>(), any::<bool>());
    prop_oneof![
        (series(), numbers, "[a-z.]{0,180}", pools).prop_map(|(series, it, domain, pools)| {
            let (v4, v6) = ((pools.0.into(), pools.1), (pools.2.into(), pools.3));
            let (started, time) = it;
            Body::Certifies(Box::new(Certifying { started, series, time, domain, v4, v6 }))
        }),
        (series(), numbers).prop_map(|(series, (started, done))| Body::Follows(Following {
            started,
            series,
            done
        })),
        (series(), device).prop_map(|(series, (name, key, number, revoked))| {
            let key = PublicKey::new(key);
            Body::Member { series, device: Box::new(Device { name, key, number, revoked }) }
        }),
    ]
}

fn router() -> impl Strategy<Value = Router> {
    let ports = prop_oneof![
        Just(Ports::Unknown),
        Just(Ports::One),
        Just(Ports::Each),
        (1..i16::MAX).prop_map(Ports::Step),
        (i16::MIN..0).prop_map(Ports::Step),
    ];
    let strangers =
        prop_oneof![Just(Strangers::Unknown), Just(Strangers::Pass), Just(Strangers::Taken)];
    (ports, strangers).prop_map(|(ports, strangers)| Router { ports, strangers })
}

fn reached() -> impl Strategy<Value = Reached> {
    let micros = proptest::option::of(1..u32::MAX);
    (name(), any::<bool>(), micros).prop_map(|(name, is_direct, micros)| Reached {
        name,
        is_direct,
        micros,
    })
}

fn body() -> impl Strategy<Value = Body> {
    let claims = (any::<[u8; 32]>(), name(), any::<u32>(), any::<u128>(), any::<u64>());
    let identity = claims.prop_map(|(key, name, v4, v6, expires)| {
        let (key, v4, v6) = (PublicKey::new(key), v4.into(), v6.into());
        signer().sign(Claims { key, name, v4, v6, expires })
    });
    let identity = identity.boxed();
    let bits = (0..=32_u8, 0..=128_u8);
    let membership = (identity.clone(), "[a-z.]{0,255}", bits, any::<u128>(), places(4));
    prop_oneof![
        any::<[u8; 32]>().prop_map(|key| Body::Enrol { key: PublicKey::new(key) }),
        membership.prop_map(|(identity, domain, bits, address, at)| {
            let directory = ([10, 0, 0, 1].into(), address.into());
            let authority = ([10, 0, 0, 9].into(), (!address).into());
            let directory_at = (!at.is_empty()).then_some((at, PublicKey::new([7; 32])));
            let membership =
                Membership { identity, domain, bits, directory, authority, directory_at };
            Body::Enrolled(Box::new(membership))
        }),
        (any::<u64>(), places(4), proptest::option::of(identity.clone())).prop_map(
            |(started, locals, identity)| {
                let identity = identity.map(Box::new);
                Body::Register { started, locals, identity }
            }
        ),
        proptest::collection::vec(reached(), 0..=12).prop_map(|peers| Body::Reaches { peers }),
        Just(Body::Renew),
        (identity.clone(), any::<u64>())
            .prop_map(|(it, time)| Body::Renewed { identity: Box::new(it), time }),
        (name(), any::<u16>(), places(5), proptest::option::of([router(), router()])).prop_map(
            |(name, millis, candidates, routers)| {
                let after = u64::from(millis) * SECOND / 1_000;
                Body::Punch { name, after, candidates, routers }
            }
        ),
        places(4).prop_map(|to| Body::Probe { to }),
        (identity.clone(), any::<u64>(), any::<u64>(), any::<u8>()).prop_map(
            |(identity, time, started, recall)| {
                Body::Registered { identity: Box::new(identity), time, started, recall }
            }
        ),
        name().prop_map(|name| Body::Direct { name }),
        (identity, place(), places(3), permits()).prop_map(|(identity, first, others, permits)| {
            let relays = [first].into_iter().chain(others).collect();
            Body::Direction { identity: Box::new(identity), relays, permits }
        }),
        (name(), any::<u64>(), any::<u64>()).prop_map(|(name, started, version)| Body::Ready {
            name,
            started,
            version
        }),
        Just(Body::Refused(Refusal::Offline)),
        name().prop_map(|name| Body::Withdraw { name }),
        name().prop_map(|name| Body::Withdrawn { name }),
        order(),
        of_authority(),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(transaction: u64, body in body()) {
        let message = Message { transaction, body };
        let bytes = message.to_bytes();
        prop_assert!(bytes.len() <= LONGEST);
        prop_assert_eq!(Message::parse(&bytes), Ok(message));
    }

    #[test]
    fn no_message_is_read_that_is_cut_short_or_has_bytes_after_it(
        body in body(),
        cut: prop::sample::Index,
    ) {
        let bytes = Message { transaction: 1, body }.to_bytes();
        let cut = cut.index(bytes.len());
        prop_assert!(Message::parse(&bytes[..cut]).is_err());
        // A head that says so does not make it one.
        let mut short = bytes[..cut].to_vec();
        if let Some(length) = cut.checked_sub(HEADER) {
            short[2..4].copy_from_slice(&(length as u16).to_le_bytes());
            // A punch of an older directory says nothing of routers.
            let is_older = |body: &Body| matches!(body, Body::Punch { routers: None, .. });
            prop_assert!(Message::parse(&short).map_or(true, |it| is_older(&it.body)));
        }
        prop_assert!(Message::parse(&[&bytes[..], &[0]].concat()).is_err());
    }

    #[test]
    fn any_bytes_are_a_message_or_an_error_with_its_byte(
        kind in 0..24_u8,
        body in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut bytes = vec![1, kind];
        bytes.extend_from_slice(&(body.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&body);
        match Message::parse(&bytes) {
            Ok(message) => prop_assert_eq!(message.to_bytes(), bytes),
            Err(error) => prop_assert!(error.at <= bytes.len()),
        }
    }
}

#[test]
fn what_is_wrong_is_said_with_its_byte() {
    let refusal = Message { transaction: 1, body: Body::Refused(Refusal::Used) }.to_bytes();
    let with = |at: usize, byte: u8| {
        let mut bytes = refusal.clone();
        bytes[at] = byte;
        Message::parse(&bytes).unwrap_err().to_string()
    };
    assert_eq!(with(0, 2), "byte 0: expected version 1");
    assert_eq!(with(1, 23), "byte 1: expected a type from 1 to 22");
    assert_eq!(with(2, 2), "byte 2: expected the length of what follows");
    assert_eq!(with(12, 11), "byte 12: expected a reason from 1 to 10");
    assert_eq!(Message::parse(&[]).unwrap_err().to_string(), "byte 0: expected a version");
}
