//! What the writers write, the reader reads back.

use pktio::pcap_file::{ClassicWriter, NgWriter, Precision};
use pktio::{Direction, EndOfFile, Frame, FrameMeta, Interface, LinkType, Timestamp};
use proptest::prelude::*;

use super::made::read;

fn frames() -> impl Strategy<Value = Vec<(FrameMeta, Vec<u8>)>> {
    let direction =
        prop_oneof![Just(Direction::Unknown), Just(Direction::Inbound), Just(Direction::Outbound)];
    let frame = (
        0..i64::from(u32::MAX) * 1_000_000_000,
        0..2_u32,
        direction,
        any::<u32>(),
        any::<Vec<u8>>(),
    )
        .prop_map(|(nanos, interface, direction, wire_length, bytes)| {
            let timestamp = Some(Timestamp::from_nanos(nanos));
            let meta =
                FrameMeta { timestamp, interface, direction, wire_length, ..FrameMeta::default() };
            (meta, bytes)
        });
    prop::collection::vec(frame, 0..8).prop_map(|mut frames| {
        for ((meta, _), number) in frames.iter_mut().zip(1..) {
            meta.number = number;
        }
        frames
    })
}

fn interfaces() -> [Interface; 2] {
    let interface = |name: &str, link_type| Interface {
        name: Some(name.to_string()),
        link_type,
        snaplen: 262_144,
    };
    [interface("eth0", LinkType::ETHERNET), interface("tün1", LinkType::RAW)]
}

proptest! {
    #[test]
    fn classic_keeps_times_lengths_and_bytes(frames in frames(), nanos in any::<bool>()) {
        let precision = if nanos { Precision::Nanos } else { Precision::Micros };
        let mut writer = ClassicWriter::new(Vec::new(), LinkType::RAW, precision).unwrap();
        for (meta, bytes) in &frames {
            writer.write(Frame { bytes, meta }).unwrap();
        }
        let reading = read(&writer.finish().unwrap()).unwrap();
        let kept: Vec<_> = frames.into_iter().map(|(mut meta, bytes)| {
            let unit = if nanos { 1 } else { 1000 };
            meta.timestamp = meta.timestamp
                .map(|time| Timestamp::from_nanos(time.as_nanos() / unit * unit));
            let (link_type, direction) = (LinkType::RAW, Direction::Unknown);
            (FrameMeta { link_type, direction, interface: 0, ..meta }, bytes)
        }).collect();
        prop_assert_eq!(reading.frames, kept);
        prop_assert_eq!(reading.end, EndOfFile::Clean);
    }

    #[test]
    fn pcapng_keeps_interfaces_and_directions_too(
        frames in frames(),
        comment in proptest::option::of(".*"),
    ) {
        let interfaces = interfaces();
        let mut writer = NgWriter::new(Vec::new()).unwrap();
        for (interface, number) in interfaces.iter().zip(0..) {
            prop_assert_eq!(writer.add_interface(interface).unwrap(), number);
        }
        for (meta, bytes) in &frames {
            writer.write(meta.interface, Frame { bytes, meta }, comment.as_deref()).unwrap();
        }
        let file = writer.finish().unwrap();
        let reading = read(&file).unwrap();
        let kept: Vec<_> = frames.into_iter().map(|(meta, bytes)| {
            let link_type = interfaces[meta.interface as usize].link_type;
            (FrameMeta { link_type, ..meta }, bytes)
        }).collect();
        if let (Some(comment), false) = (&comment, kept.is_empty()) {
            let found = file.windows(comment.len().max(1)).any(|at| at == comment.as_bytes());
            prop_assert!(found || comment.is_empty());
        }
        prop_assert_eq!(reading.frames, kept);
        prop_assert_eq!(reading.interfaces, interfaces);
        prop_assert_eq!(reading.end, EndOfFile::Clean);
    }
}

#[test]
fn times_and_texts_that_do_not_fit_are_cut_to_what_does() {
    let meta =
        |nanos| FrameMeta { timestamp: Some(Timestamp::from_nanos(nanos)), ..FrameMeta::default() };
    let mut writer = ClassicWriter::new(Vec::new(), LinkType::RAW, Precision::Nanos).unwrap();
    for nanos in [i64::MIN, i64::MAX] {
        writer.write(Frame { bytes: b"", meta: &meta(nanos) }).unwrap();
    }
    let reading = read(&writer.finish().unwrap()).unwrap();
    assert_eq!(reading.nanos(), [0, i64::from(u32::MAX) * 1_000_000_000]);

    let mut writer = NgWriter::new(Vec::new()).unwrap();
    let long = "ü".repeat(40_000);
    let name = Some(long.clone());
    writer.add_interface(&Interface { name, ..Interface::default() }).unwrap();
    writer.write(0, Frame { bytes: b"x", meta: &meta(-5) }, Some(&long)).unwrap();
    let reading = read(&writer.finish().unwrap()).unwrap();
    assert_eq!(reading.interfaces[0].name.as_ref().map(String::len), Some(256));
    assert_eq!((reading.nanos(), reading.bytes()), (vec![0], vec![&b"x"[..]]));
}

#[test]
fn what_no_file_can_hold_is_refused() {
    let mut writer = NgWriter::new(Vec::new()).unwrap();
    let meta = FrameMeta::default();
    assert!(writer.write(0, Frame { bytes: b"", meta: &meta }, None).is_err());
    let link_type = LinkType(70_000);
    assert!(writer.add_interface(&Interface { link_type, ..Interface::default() }).is_err());
    assert_eq!(writer.add_interface(&Interface::default()).unwrap(), 0);
    let bytes = vec![0; 16 * 1024 * 1024 + 1];
    assert!(writer.write(0, Frame { bytes: &bytes, meta: &meta }, None).is_err());
    assert_eq!(read(&writer.finish().unwrap()).unwrap().frames, []);
}
