//! One-time keys.

use overlay::limits::INVITATION;
use overlay::{Body, Enrolment, Membership, Message, NotEnrolled, Now, Refusal};
use proptest::prelude::*;
use tunnel::PublicKey;

use crate::world::{Flying, World, name, policy, secret, signer};

/// What a device that has this key is answered under a one-time key.
fn enrol(world: &mut World, guest: PublicKey, key: PublicKey) -> Result<Membership, NotEnrolled> {
    let enrolment = Enrolment::new(5, key, signer().key());
    world.authority.receive(&guest, &enrolment.question(), world.time());
    world.carry_out();
    let Some(Flying::ToPeer(to, bytes)) = world.flying.pop() else { panic!("no answer") };
    assert_eq!(to, guest);
    enrolment.answered(&bytes).expect("an answer")
}

fn invite(world: &mut World, text: &str) -> PublicKey {
    let guest = world.authority.invite(name(text), world.time()).unwrap().public();
    world.carry_out();
    assert!(world.admitted.contains(&guest));
    guest
}

#[test]
fn a_second_use_is_refused_and_noted() {
    let mut world = World::new(policy(&[]), 1);
    let guest = invite(&mut world, "nas");
    let membership = enrol(&mut world, guest, secret(1).public()).unwrap();
    assert_eq!(membership.identity.claims.v4.to_string(), "10.99.0.2");
    assert_eq!(membership.domain, "home.example");
    // The same device again: its answer was lost.
    assert_eq!(enrol(&mut world, guest, secret(1).public()).unwrap().identity, membership.identity);
    assert!(!world.notes.iter().any(|line| line.starts_with("alarm")));
    world.restart_directory();
    let again = enrol(&mut world, guest, secret(2).public());
    assert_eq!(again, Err(NotEnrolled::Refused(Refusal::Used)));
    assert!(world.notes.iter().any(|line| line.contains("of nas was used a second time")));
    assert!(!world.admitted.contains(&secret(2).public()));
}

#[test]
fn a_key_expires() {
    let mut world = World::new(policy(&[]), 1);
    let guest = invite(&mut world, "nas");
    let now = world.time();
    let late = Now { unix: now.unix + INVITATION, ..now };
    let enrolment = Enrolment::new(5, secret(1).public(), signer().key());
    world.authority.receive(&guest, &enrolment.question(), late);
    world.carry_out();
    let Some(Flying::ToPeer(_, bytes)) = world.flying.pop() else { panic!("no answer") };
    let refused = Some(Err(NotEnrolled::Refused(Refusal::Expired)));
    assert_eq!(enrolment.answered(&bytes), refused);
    world.authority.sweep(late);
    world.carry_out();
    assert!(world.admitted.is_empty() && world.disk.invitations.is_empty());
}

#[test]
fn a_name_keeps_its_addresses_and_its_last_key() {
    let mut world = World::new(policy(&[]), 1);
    let guest = invite(&mut world, "nas");
    let first = enrol(&mut world, guest, secret(1).public()).unwrap().identity.claims;
    let guest = invite(&mut world, "tv");
    assert_ne!(enrol(&mut world, guest, secret(2).public()).unwrap().identity.claims.v4, first.v4);
    assert!(world.revoke(&name("nas")));
    let guest = invite(&mut world, "nas");
    let second = enrol(&mut world, guest, secret(3).public()).unwrap().identity.claims;
    assert_eq!((second.v4, second.v6), (first.v4, first.v6));
    assert!(world.admitted.contains(&secret(3).public()));
    assert!(!world.admitted.contains(&secret(1).public()));
}

#[test]
fn the_key_of_another_node_is_refused() {
    let mut world = World::new(policy(&[]), 1);
    let guest = invite(&mut world, "nas");
    enrol(&mut world, guest, secret(1).public()).unwrap();
    let other = invite(&mut world, "tv");
    for taken in [secret(1).public(), secret(1_000).public(), other, guest] {
        let refused = Err(NotEnrolled::Refused(Refusal::KeyTaken));
        assert_eq!(enrol(&mut world, other, taken), refused);
    }
    assert!(enrol(&mut world, other, secret(2).public()).is_ok());
}

#[test]
fn the_key_of_a_revoked_node_may_be_another_nodes_and_stays_so() {
    let mut world = World::new(policy(&[]), 1);
    let guest = invite(&mut world, "nas");
    enrol(&mut world, guest, secret(1).public()).unwrap();
    assert!(world.revoke(&name("nas")));
    let guest = invite(&mut world, "tv");
    enrol(&mut world, guest, secret(1).public()).unwrap();
    let guest = invite(&mut world, "nas");
    enrol(&mut world, guest, secret(2).public()).unwrap();
    for key in [1, 2] {
        assert!(world.admitted.contains(&secret(key).public()), "{key}");
    }
    // It is asked for its identity as before.
    world.flying.clear();
    let renew = Message { transaction: 3, body: Body::Renew }.to_bytes();
    world.deliver(Flying::ToAuthority(secret(1).public(), renew));
    let Some(Flying::ToPeer(_, answer)) = world.flying.pop() else { panic!("no answer") };
    let Body::Renewed { identity, .. } = Message::parse(&answer).unwrap().body else { panic!() };
    assert_eq!(identity.claims.name, name("tv"));
}

#[test]
fn a_full_pool_is_said_to_be_full() {
    let mut world = World::new(policy(&[]), 1);
    for number in 0..253 {
        let guest = invite(&mut world, &format!("n{number}"));
        assert!(enrol(&mut world, guest, secret(number + 1).public()).is_ok());
    }
    let guest = invite(&mut world, "last");
    let refused = Err(NotEnrolled::Refused(Refusal::Full));
    assert_eq!(enrol(&mut world, guest, secret(500).public()), refused);
}

#[test]
fn a_flood_of_alarms_leaves_room_in_the_log() {
    let mut world = World::new(policy(&[]), 1);
    let guest = invite(&mut world, "nas");
    enrol(&mut world, guest, secret(1).public()).unwrap();
    for _ in 0..1_000 {
        assert!(enrol(&mut world, guest, secret(2).public()).is_err());
    }
    assert_eq!(world.notes.len(), 100);
    assert!(world.notes[99].contains("are left out"));
    world.now += 11_000_000_000;
    assert!(enrol(&mut world, guest, secret(2).public()).is_err());
    assert_eq!(world.notes.len(), 101);
}

#[test]
fn a_guest_may_do_nothing_else() {
    let mut world = World::new(policy(&[["*", "*"]]), 1);
    world.enrolled("nas", 1);
    let guest = invite(&mut world, "tv");
    for body in [
        Body::Register { started: 1, locals: Vec::new(), identity: None },
        Body::Direct { name: name("nas") },
    ] {
        let bytes = Message { transaction: 1, body }.to_bytes();
        world.authority.receive(&guest, &bytes, world.time());
        world.carry_out();
        assert!(world.flying.is_empty());
    }
}

proptest! {
    /// Whatever is tried under a few one-time keys, with restarts between: each one is good for one key, and what was
    /// acknowledged is kept.
    #[test]
    fn a_one_time_key_is_good_for_one_key(
        tries in proptest::collection::vec((0..3_usize, 1..4_u64, any::<bool>()), 1..24),
    ) {
        let mut world = World::new(policy(&[]), 3);
        let guests = ["a", "b", "c"].map(|name| invite(&mut world, name));
        let mut used = [None; 3];
        for (guest, number, restarts) in tries {
            let key = secret(number).public();
            let by_other = used.iter().enumerate().any(|(at, it)| at != guest && *it == Some(key));
            let expected = match used[guest] {
                Some(before) if before == key => Ok(()),
                Some(_) => Err(NotEnrolled::Refused(Refusal::Used)),
                None if by_other => Err(NotEnrolled::Refused(Refusal::KeyTaken)),
                None => Ok(()),
            };
            let got = enrol(&mut world, guests[guest], key).map(drop);
            prop_assert_eq!(got, expected);
            if got.is_ok() {
                used[guest] = Some(key);
            }
            if restarts {
                world.restart_directory();
            }
            for key in used.iter().flatten() {
                prop_assert!(world.admitted.contains(key));
            }
        }
    }
}
