//! Packets that rules logged (NFLOG): each walks on from the hook that logged it.

use std::net::IpAddr;

use dataplane::{Arrival, Config, Handler, Judgement, Observer};
use packet::Link;
use packet::craft::{Addresses, Craft, Message};
use packet::tcp::Flags;
use rules::conntrack::Mode;
use rules::eval;
use rules::save::{LoadOptions, load};

struct Nobody;

impl eval::Observer for Nobody {}

impl Observer for Nobody {}

/// A record of a segment at a hook, as `linux/netfilter.h` counts them.
fn record(hook: u8, source: (&str, u16), destination: (&str, u16), flags: Flags) -> Vec<u8> {
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    let addresses = Addresses::new(address(source.0), address(destination.0)).expect("one family");
    let message = Message::Tcp {
        source_port: source.1,
        destination_port: destination.1,
        flags,
        sequence: 0,
        acknowledgement: 1,
        window: 0,
    };
    let packet = Craft { ethernet: None, ..Craft::new(addresses, message) }.frame();
    let mut record = vec![2, 0, 0, 5];
    for (kind, value) in [(1_u16, &[8, 0, hook, 0][..]), (9, &packet)] {
        record.extend((4 + value.len() as u16).to_le_bytes());
        record.extend(kind.to_le_bytes());
        record.extend(value);
        record.resize(record.len().next_multiple_of(4), 0);
    }
    record
}

/// Records have the time at which they were read, and the kernel hands them out once a second.
#[test]
fn an_answer_may_be_read_a_second_after_what_it_answers() {
    let text = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n\
        -A INPUT -p tcp -j REJECT --reject-with tcp-reset\n\
        -A OUTPUT -m conntrack --ctstate INVALID -j DROP\nCOMMIT\n";
    let rules = load(text, &LoadOptions::default()).expect("rules").ruleset;
    let mut config = Config::default();
    config.ct.mode = Mode::Kernel;
    let (client, host) = (("10.0.0.9", 1000), ("10.0.0.1", 23));
    let reset = Flags(Flags::RST.0 | Flags::ACK.0);
    for (later, is_attached) in [(1_000, true), (1_200_000_000, true), (4_000_000_000, false)] {
        let mut handler = Handler::new([&rules], &config);
        let mut becomes = |time: u64, mut bytes: Vec<u8>| {
            let number = time + 1;
            let arrival =
                Arrival { time: Some(time), ..Arrival::new(number, Link::Nflog, bytes.len()) };
            handler.handle(&mut bytes, &arrival, &mut Nobody).end.judgement
        };
        let refused = becomes(1, record(1, client, host, Flags::SYN));
        assert!(matches!(refused, Judgement::Reject(_)), "{refused:?}");
        let answer = becomes(1 + later, record(3, host, client, reset));
        assert_eq!(matches!(answer, Judgement::Accept(_)), is_attached, "{later}: {answer:?}");
    }
}
