//! Classic pcap: byte orders, precisions, old versions, large packets, refusals.

use pktio::{Damage, Direction, EndOfFile, LinkType};

use super::made::{ORDERS, Order, read, read_in_pieces};

#[test]
fn both_byte_orders_and_both_precisions() {
    for order in ORDERS {
        for (magic, nanos) in [(0xa1b2_c3d4, 1_000_000_005_000), (0xa1b2_3c4d, 1_000_000_000_005)] {
            let header = order.pcap_header(magic, (2, 4), 101);
            let record = order.pcap_record(1000, 5, (4, 60), b"\x45abc");
            let reading = read(&[header, record].concat()).unwrap();
            assert_eq!(reading.nanos(), [nanos], "{order:?} {magic:x}");
            assert_eq!(reading.bytes(), [b"\x45abc"]);
            let meta = reading.frames[0].0;
            assert_eq!((meta.wire_length, meta.link_type), (60, LinkType::RAW));
            assert_eq!((meta.interface, meta.direction), (0, Direction::Unknown));
            assert_eq!(reading.interfaces.len(), 1);
            assert_eq!(
                (reading.interfaces[0].snaplen, &reading.interfaces[0].name),
                (65_535, &None)
            );
            assert_eq!(reading.end, EndOfFile::Clean);
        }
    }
}

#[test]
fn patched_records_are_longer_and_tell_the_direction() {
    for order in ORDERS {
        let record = |packet_type, byte| {
            let extra = [order.u32(3), order.u16(0x0800), vec![packet_type, 0]].concat();
            order.pcap_record(1, 0, (1, 1), &[extra, vec![byte]].concat())
        };
        let header = order.pcap_header(0xa1b2_cd34, (2, 4), 1);
        let reading = read(&[header, record(0, 7), record(4, 8), record(3, 9)].concat()).unwrap();
        assert_eq!(reading.bytes(), [[7], [8], [9]]);
        let directions: Vec<_> = reading.frames.iter().map(|(meta, _)| meta.direction).collect();
        assert_eq!(directions, [Direction::Inbound, Direction::Outbound, Direction::Unknown]);
    }
}

#[test]
fn old_versions_swapped_the_lengths() {
    let order = Order::Big;
    let file = |version, lengths| {
        [order.pcap_header(0xa1b2_c3d4, version, 1), order.pcap_record(0, 0, lengths, b"abc")]
            .concat()
    };
    for (version, lengths) in
        [((2, 2), (9, 3)), ((2, 3), (9, 3)), ((2, 3), (3, 9)), ((2, 4), (3, 9)), ((543, 0), (3, 9))]
    {
        let reading = read(&file(version, lengths)).unwrap();
        assert_eq!(reading.bytes(), [b"abc"], "{version:?}");
        assert_eq!(reading.frames[0].0.wire_length, 9, "{version:?}");
    }
}

#[test]
fn the_check_sequence_bits_are_no_part_of_the_link_type() {
    let header = Order::Little.pcap_header(0xa1b2_c3d4, (2, 4), 0x5400_0000 | 113);
    assert_eq!(read(&header).unwrap().interfaces[0].link_type, LinkType::LINUX_SLL);
}

#[test]
fn large_packets_cross_the_buffer_and_outgrow_it() {
    let order = Order::Little;
    let mut file = order.pcap_header(0xa1b2_3c4d, (2, 4), 1);
    for byte in 0..20 {
        let length = 65_536 - u32::from(byte);
        let bytes = vec![byte; length as usize];
        file.extend(order.pcap_record(0, 0, (length, length), &bytes));
    }
    for (capacity, step) in [(100_000, usize::MAX), (100, usize::MAX), (70_000, 999), (0, 4096)] {
        let reading = read_in_pieces(&file, capacity, step).unwrap();
        assert_eq!(reading.frames.len(), 20);
        for ((_, bytes), byte) in reading.frames.iter().zip(0_u8..) {
            assert_eq!(bytes.len(), 65_536 - usize::from(byte));
            assert!(bytes.iter().all(|found| *found == byte));
        }
        assert_eq!(reading.end, EndOfFile::Clean);
    }
}

#[test]
fn an_absurd_length_ends_the_file_there() {
    let order = Order::Little;
    let header = order.pcap_header(0xa1b2_c3d4, (2, 4), 1);
    let good = order.pcap_record(0, 0, (5, 5), b"first");
    let bad = order.pcap_record(0, 0, (16 * 1024 * 1024 + 1, 60), &[0; 60]);
    let reading = read(&[header, good, bad].concat()).unwrap();
    assert_eq!(reading.bytes(), [b"first"]);
    let damage = Damage::PacketTooLong { captured: 16 * 1024 * 1024 + 1 };
    assert_eq!(reading.end, EndOfFile::Corrupt { offset: 24 + 16 + 5, damage });
}

#[test]
fn what_is_no_capture_is_refused_with_what_was_found() {
    let refused = |file: &[u8]| read(file).unwrap_err().to_string();
    let expected = "made: byte 0: expected a pcap or pcapng magic number, found ";
    assert_eq!(refused(b""), format!("{expected}the end of the file"));
    assert_eq!(refused(b"*filter\n"), format!("{expected}2a 66 69 6c"));
    assert_eq!(refused(&[0xd4, 0xc3]), format!("{expected}d4 c3"));
    let header = Order::Big.pcap_header(0xa1b2_c3d4, (2, 5), 1);
    let expected = "made: byte 4: expected pcap version 2.0 to 2.4, found version 2.5";
    assert_eq!(refused(&header), expected);
}
