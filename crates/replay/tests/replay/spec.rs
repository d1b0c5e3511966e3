//! Any words as a packet: `spec::parse` must name a column or make a frame that the parser understands.

use packet::{Checksums, Link, Packet};
use proptest::prelude::*;
use replay::spec::parse;

/// Text out of the words that a SPEC is made of, and others.
fn words() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        6 => prop::sample::select(vec![
            "tcp", "udp", "icmp", "icmpv6", "sctp", "esp", "0", "255", "arp", "who-has", "tell", ">",
            "10.0.0.1", "10.0.0.2:80", "::1", "[::1]:65535", "fe80::1", "syn,ack", "fin-none", "echo-reply",
            "3/255", "256/0", "in=eth0", "out=", "ttl=0", "mark=0xffffffff", "tos=255",
            "mac=ff:ff:ff:ff:ff:ff", "mac=1:2", "len=0", "len=28", "len=65535", "frag=0+", "frag=65535",
            "frag=8", "frag=1+",
        ])
        .prop_map(str::to_owned),
        1 => "(in|out|ttl|mark|mac|len|tos|frag)=[0-9a-fx:+]{0,9}",
        1 => "\\PC{0,6}",
    ];
    prop::collection::vec(word, 0..9).prop_map(|words| words.join(" "))
}

/// A packet that may well be accepted: protocol, two ends, keys.
fn packets() -> impl Strategy<Value = String> {
    let ends = prop::sample::select(vec!["10.0.0.1:5 > 10.0.0.2:80", "[::1]:5 > [fe80::2]:80"]);
    ("tcp|udp|icmp|icmpv6|sctp|esp|[0-9]{1,3}", ends, any::<(u8, u16, u16, bool)>()).prop_map(
        |(protocol, ends, (ttl, len, offset, more))| {
            let more = if more { "+" } else { "" };
            format!("{protocol} {ends} ttl={ttl} len={len} frag={offset}{more}")
        },
    )
}

fn check(text: &str) -> Result<(), TestCaseError> {
    match parse(text) {
        Ok(spec) => {
            let mut frame = spec.frame.clone();
            let wire_len = frame.len();
            prop_assert!(wire_len <= 14 + 40 + usize::from(u16::MAX), "{wire_len} bytes");
            let packet = Packet::parse(&mut frame, wire_len, Link::Ethernet, Checksums::Verify);
            prop_assert!(packet.headers().network == 14, "{packet}");
        }
        Err(error) => {
            prop_assert!((1..=text.len() + 1).contains(&error.column), "{error}");
            prop_assert!(text.is_char_boundary(error.column - 1), "{error}");
            prop_assert!(error.what.len() < text.len() + 200, "{error}");
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_text_makes_a_frame_or_names_a_column(text in "\\PC{0,60}") {
        check(&text)?;
    }

    #[test]
    fn any_words_of_a_spec_make_a_frame_or_name_a_column(text in words()) {
        check(&text)?;
    }

    #[test]
    fn any_lengths_and_fragments_make_a_frame_or_name_a_column(text in packets()) {
        check(&text)?;
    }
}
