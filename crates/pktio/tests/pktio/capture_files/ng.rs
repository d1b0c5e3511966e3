//! pcapng: sections, interfaces, clocks, the three kinds of packet blocks, and what can be wrong.

use pktio::{Burst, CaptureReader, Damage, Direction, EndOfFile, LinkType, Port};

use super::made::{Made, ORDERS, Order, read};

const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
const FLAGS: u16 = 2;
const COMMENT: u16 = 1;

#[test]
fn interfaces_have_names_clocks_and_link_types_of_their_own() {
    for order in ORDERS {
        let options = [
            order.option(COMMENT, b"uplink"),
            order.option(IF_NAME, b"wan0\0"),
            order.option(IF_TSRESOL, &[9]),
            order.option(IF_TSOFFSET, &order.u64(100)),
            order.option(0, &[]),
        ]
        .concat();
        let file = [
            order.section(),
            order.interface(1, 128, &options),
            order.interface(101, 0, &[]),
            order.enhanced(1, 7, b"raw", &[]),
            order.enhanced(0, 1 << 40, b"ethernet", &[]),
        ]
        .concat();
        let reading = read(&file).unwrap();
        assert_eq!(reading.interfaces[0].name.as_deref(), Some("wan0"));
        assert_eq!(reading.interfaces[0].snaplen, 128);
        assert_eq!(reading.interfaces[1].name, None);
        assert_eq!(reading.bytes(), [&b"raw"[..], b"ethernet"]);
        assert_eq!(reading.nanos(), [7_000, (1 << 40) + 100_000_000_000]);
        let [raw, ethernet] = [reading.frames[0].0, reading.frames[1].0];
        assert_eq!((raw.interface, raw.link_type, raw.wire_length), (1, LinkType::RAW, 13));
        assert_eq!((ethernet.interface, ethernet.link_type), (0, LinkType::ETHERNET));
        assert_eq!(reading.end, EndOfFile::Clean);
    }
}

#[test]
fn directions_come_from_the_flags_of_both_packet_blocks() {
    for order in ORDERS {
        let flags = |flags| {
            [order.option(COMMENT, b"odd"), order.option(FLAGS, &order.u32(flags))].concat()
        };
        let file = [
            order.section(),
            order.interface(1, 0, &[]),
            order.enhanced(0, 0, b"in", &flags(0xf0001)),
            order.enhanced(0, 0, b"out", &flags(2)),
            order.enhanced(0, 0, b"odd", &flags(3)),
            order.obsolete(0, 5, b"old", &flags(2)),
        ]
        .concat();
        let reading = read(&file).unwrap();
        let directions: Vec<_> = reading.frames.iter().map(|(meta, _)| meta.direction).collect();
        let (inbound, outbound) = (Direction::Inbound, Direction::Outbound);
        assert_eq!(directions, [inbound, outbound, Direction::Unknown, outbound]);
        assert_eq!(reading.nanos()[3], 5_000);
    }
}

#[test]
fn simple_packets_have_no_time_and_the_snapshot_length_of_interface_0() {
    for order in ORDERS {
        let file = [
            order.section(),
            order.interface(1, 6, &[]),
            order.simple(9, b"123456"),
            order.simple(3, b"abc"),
        ]
        .concat();
        let reading = read(&file).unwrap();
        assert_eq!(reading.bytes(), [&b"123456"[..], b"abc"]);
        assert_eq!(reading.frames[0].0.wire_length, 9);
        assert_eq!(reading.frames[0].0.timestamp, None);
    }
}

#[test]
fn a_new_section_may_turn_the_byte_order_and_numbers_its_interfaces_anew() {
    let [little, big] = ORDERS;
    let file = [
        little.section(),
        little.interface(1, 0, &little.option(IF_NAME, b"first")),
        little.enhanced(0, 0, b"one", &[]),
        big.section(),
        big.interface(113, 0, &big.option(IF_NAME, b"second")),
        big.block(0x0bad, b"a block nobody knows"),
        big.enhanced(0, 0, b"two", &[]),
    ]
    .concat();
    let reading = read(&file).unwrap();
    assert_eq!(reading.bytes(), [b"one", b"two"]);
    let [one, two] = [reading.frames[0].0, reading.frames[1].0];
    assert_eq!((one.interface, one.link_type), (0, LinkType::ETHERNET));
    assert_eq!((two.interface, two.link_type), (1, LinkType::LINUX_SLL));
    assert_eq!(reading.interfaces[1].name.as_deref(), Some("second"));
}

/// Reads a section with an interface and a packet, then `bad`; returns what was wrong with that.
fn damage_of(order: Order, bad: Vec<u8>) -> Damage {
    let made = Made::new(&[
        order.section(),
        order.interface(1, 0, &[]),
        order.enhanced(0, 0, b"good", &[]),
        bad,
        order.enhanced(0, 0, b"never reached", &[]),
    ]);
    let reading = read(&made.file).expect("a file that begins well opens");
    assert_eq!(reading.bytes(), [b"good"]);
    match reading.end {
        EndOfFile::Corrupt { offset, damage } if offset == made.starts[3] as u64 => damage,
        other => panic!("not corrupt at the fourth block: {other:?}"),
    }
}

#[test]
fn each_kind_of_damage_is_named() {
    for order in ORDERS {
        let id = 5;
        let unknown = Damage::UnknownInterface { id, described: 1 };
        assert_eq!(damage_of(order, order.enhanced(id, 0, b"", &[])), unknown);
        assert_eq!(damage_of(order, order.obsolete(5, 0, b"", &[])), unknown);

        for length in [0, 8, 13, 0xffff_fffc] {
            let block = [order.u32(6), order.u32(length), vec![0; 40]].concat();
            assert_eq!(damage_of(order, block), Damage::BlockLength { length });
        }
        let short = order.block(6, &[0; 16]);
        assert_eq!(damage_of(order, short), Damage::BlockLength { length: 28 });

        let mut block = order.enhanced(0, 0, b"abcd", &[]);
        let at = block.len() - 4;
        block.splice(at.., order.u32(99));
        assert_eq!(damage_of(order, block), Damage::BlockTrailer { length: 36, trailer: 99 });

        let mut block = order.enhanced(0, 0, b"abcd", &[]);
        block.splice(20..24, order.u32(5));
        assert_eq!(damage_of(order, block), Damage::CapturedLength { captured: 5, room: 4 });
        let simple = order.simple(10, b"12345678");
        assert_eq!(damage_of(order, simple), Damage::CapturedLength { captured: 10, room: 8 });

        let mut section = order.section();
        section.splice(8..12, *b"what");
        assert_eq!(damage_of(order, section), Damage::ByteOrderMagic { found: *b"what" });
        let mut section = order.section();
        section.splice(12..14, order.u16(2));
        assert_eq!(damage_of(order, section), Damage::SectionVersion { major: 2, minor: 0 });
        let section = [order.section(), order.simple(0, &[])].concat();
        let reading = read(&section).unwrap();
        let damage = Damage::UnknownInterface { id: 0, described: 0 };
        assert_eq!(reading.end, EndOfFile::Corrupt { offset: 28, damage });
    }
}

#[test]
fn options_that_do_not_fit_are_passed_over() {
    let order = Order::Little;
    let options = [order.option(IF_NAME, b"eth0"), order.u16(IF_TSRESOL), order.u16(500)].concat();
    let file = [
        order.section(),
        order.interface(1, 0, &options),
        order.enhanced(0, 1, b"x", &[1, 0, 255, 255]),
    ];
    let reading = read(&file.concat()).unwrap();
    assert_eq!(reading.interfaces[0].name.as_deref(), Some("eth0"));
    assert_eq!(reading.nanos(), [1000]);
}

#[test]
fn interfaces_are_bounded() {
    let order = Order::Little;
    let interface = order.interface(1, 0, &[]);
    let file = [order.section(), interface.repeat(65_537)].concat();
    let reading = read(&file).unwrap();
    assert_eq!(reading.interfaces.len(), 65_536);
    let offset = 28 + 20 * 65_536;
    let damage = Damage::TooManyInterfaces { limit: 65_536 };
    assert_eq!(reading.end, EndOfFile::Corrupt { offset, damage });
}

#[test]
fn the_latest_statistics_of_each_interface_say_what_was_lost() {
    let counted = |interface: u32, lost: &[(u16, u64)]| {
        let mut body = [interface, 0, 0].map(u32::to_le_bytes).concat();
        for (code, count) in lost {
            body.extend([code.to_le_bytes(), 8_u16.to_le_bytes()].concat());
            body.extend(count.to_le_bytes());
        }
        let length = (body.len() as u32 + 12).to_le_bytes();
        [&5_u32.to_le_bytes(), &length, &*body, &length].concat()
    };
    let dropped = |blocks: &[Vec<u8>]| {
        let mut out = pktio::pcap_file::NgWriter::new(Vec::new()).unwrap();
        out.add_interface(&pktio::Interface::default()).unwrap();
        out.add_interface(&pktio::Interface::default()).unwrap();
        let file = [out.finish().unwrap(), blocks.concat()].concat();
        let mut reader = CaptureReader::new("made", std::io::Cursor::new(file)).unwrap();
        while reader.rx_burst(&mut Burst::new()).unwrap() > 0 {}
        assert_eq!(reader.warning(), None);
        reader.dropped()
    };
    assert_eq!(dropped(&[]), None);
    // Code 4 counts received frames: no losses are known.
    assert_eq!(dropped(&[counted(0, &[(4, 9)])]), None);
    assert_eq!(dropped(&[counted(0, &[(5, 3)]), counted(0, &[(5, 4), (7, 2)])]), Some(6));
    assert_eq!(dropped(&[counted(0, &[(5, 0)]), counted(1, &[(7, 5)])]), Some(5));
    assert_eq!(dropped(&[counted(7, &[(5, 3)])]), None, "no such interface");
}
