//! Peers that break the protocol from within: they have the right keys, so only what we check ourselves stops them.

use super::*;
use crate::aead::Suite;
use crate::entropy::SystemEntropy;
use crate::inner::Inner;
use crate::job::Dropped;
use crate::mac::Mac1;
use crate::message::{RESPONSE, RESPONSE_NOISE, Type};
use crate::noise::{Ephemeral, accept, prologue};
use crate::{Offer, PeerConfig, Prefix, PresharedKey, PrivateKey};

/// What a responder with `key` answers to an initiation, choosing `suite`.
fn response(key: &PrivateKey, initiation: &[u8], suite: u8) -> [u8; RESPONSE] {
    let head = initiation[..8].try_into().unwrap();
    let (noise, mut payload) = (&initiation[8..120], [0; 16]);
    let ephemeral = Ephemeral::new([9; 32]);
    let accepted = accept(key, &prologue(head), ephemeral, noise, &mut payload).unwrap();
    let (to, mut message) = (accepted.remote, [0; RESPONSE]);
    message[..4].copy_from_slice(&Type::Response.first());
    message[8..12].copy_from_slice(&initiation[4..8]);
    let mut chosen = [0; 32];
    chosen[0] = suite;
    let psk = PresharedKey::default();
    accepted.answer(&psk, &chosen, &mut message[RESPONSE_NOISE..RESPONSE - 32]).unwrap();
    Mac1::of(&to).sign(&mut message);
    message
}

#[test]
fn a_choice_that_was_not_offered_makes_no_session() {
    let remote = PrivateKey::new([2; 32]);
    let endpoint = "192.0.2.2:1".parse().unwrap();
    let packet = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let destination = Inner::parse(&packet).unwrap().destination;
    for (offer, suite, established) in [
        (Offer::CHACHA, Suite::ChaCha20Poly1305 as u8, true),
        (Offer::CHACHA, Suite::Aes256Gcm as u8, false),
        (Offer::BOTH, Suite::Aes256Gcm as u8, true),
        (Offer::BOTH, 4, false),
    ] {
        let key = PrivateKey::new([1; 32]);
        let config = Config { key, offer, started: 0, started_unix: 0, mtu: 1_420 };
        let mut tunnel = Tunnel::new(config, Box::new(SystemEntropy::new())).unwrap();
        let peer = PeerConfig {
            endpoint: Some(endpoint),
            allowed: vec![Prefix::new(destination, 32).unwrap()],
            ..PeerConfig::new(remote.public())
        };
        let id = tunnel.add_peer(&peer).unwrap();
        assert!(matches!(tunnel.stage(&packet, 1), Staged::Wait(_)));
        let Some(Due::Send(initiation)) = tunnel.due(1) else { panic!("nothing is due") };
        let answer = response(&remote, initiation.bytes(), suite);
        match tunnel.receive(&answer, endpoint, 2) {
            Received::Established { .. } => assert!(established, "{suite} of {offer:?}"),
            Received::Dropped(why) => assert_eq!((why, established), (Dropped::NoSuite(id), false)),
            _ => panic!("{suite} of {offer:?}"),
        }
    }
}
