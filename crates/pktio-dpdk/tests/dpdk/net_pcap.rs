//! `net_pcap`: from one capture to another, both read by `pktio`'s own reader.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use pktio::pcap_file::{ClassicWriter, Precision};
use pktio::{Burst, CaptureReader, Frame, FrameMeta, LinkType, Port, Timestamp};

use crate::child::{Draw, open, with_devices};

const FRAMES: usize = 3000;

/// Longer than an mbuf: it comes in two.
const TOO_LONG: usize = 2500;

#[test]
fn a_capture_passes_from_file_to_file_as_it_is() {
    let test = "net_pcap::a_capture_passes_from_file_to_file_as_it_is";
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["in.pcap", "out.pcap"].map(|name| folder.path().join(name));
    let frames = write(&from);
    let [reads, writes] = [
        format!("net_pcap0,rx_pcap={}", from.display()),
        format!("net_pcap1,tx_pcap={}", to.display()),
    ];
    with_devices(test, &[&reads, &writes], |eal| {
        let mut reader = open(eal, "net_pcap0", |_| {});
        let mut writer = open(eal, "net_pcap1", |config| config.drain = Duration::MAX);
        let mbufs = reader.mbufs();
        let mut burst = Burst::with_capacity(0);
        while reader.rx_burst(&mut burst).unwrap() > 0 {
            writer.tx_burst(&mut burst).unwrap();
            assert!(burst.is_empty());
        }
        assert_eq!((reader.stats().rx_frames, reader.stats().rx_lost), (FRAMES as u64, 1));
        assert_eq!(writer.stats().tx_copied, 0);
        drop((reader, writer));
        assert_eq!(mbufs.free(), mbufs.all());
        assert_eq!(frames_of(&to), frames);
    });
}

/// Writes frames, and a last one too long for an mbuf; returns all but the last.
fn write(to: &Path) -> Vec<Vec<u8>> {
    let mut draw = Draw(11);
    let frames: Vec<Vec<u8>> = (0..FRAMES)
        .map(|_| {
            let length = 60 + draw.below(1455);
            draw.bytes(length)
        })
        .collect();
    let file = File::create(to).unwrap();
    let mut writer = ClassicWriter::new(file, LinkType::ETHERNET, Precision::Micros).unwrap();
    for bytes in frames.iter().chain([&vec![0; TOO_LONG]]) {
        let meta = FrameMeta {
            link_type: LinkType::ETHERNET,
            wire_length: bytes.len() as u32,
            timestamp: Some(Timestamp::default()),
            ..FrameMeta::default()
        };
        writer.write(Frame { bytes, meta: &meta }).unwrap();
    }
    writer.finish().unwrap();
    frames
}

fn frames_of(file: &Path) -> Vec<Vec<u8>> {
    let mut reader = CaptureReader::open(&file.to_string_lossy()).unwrap();
    let (mut burst, mut frames) = (Burst::new(), Vec::new());
    while reader.rx_burst(&mut burst).unwrap() > 0 {
        frames.extend(burst.iter().map(|frame| frame.bytes.to_vec()));
    }
    frames
}
