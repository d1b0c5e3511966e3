//! Captures inside gzip and zstd: whole, in several members, cut after every byte, damaged.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use pktio::{Damage, EndOfFile};

use super::made::{read, read_in_pieces, small_ng, small_pcap};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("memory takes every byte");
    encoder.finish().expect("memory takes every byte")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).expect("memory takes every byte");
    encoder.include_checksum(true).expect("memory takes every byte");
    encoder.write_all(bytes).expect("memory takes every byte");
    encoder.finish().expect("memory takes every byte")
}

/// A gzip file with one stored block, so that each byte after the first 15 is a byte of `bytes`.
fn stored_gzip(bytes: &[u8]) -> Vec<u8> {
    let mut checksum = flate2::Crc::new();
    checksum.update(bytes);
    let length = bytes.len() as u16;
    [
        &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1][..],
        &length.to_le_bytes(),
        &(!length).to_le_bytes(),
        bytes,
        &checksum.sum().to_le_bytes(),
        &u32::from(length).to_le_bytes(),
    ]
    .concat()
}

#[test]
fn compressed_files_read_like_plain_ones() {
    for made in [small_pcap(), small_ng()] {
        let plain = read(&made.file).unwrap();
        let (first, second) = made.file.split_at(40);
        let skippable = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3].to_vec();
        let files = [
            gzip(&made.file),
            stored_gzip(&made.file),
            [gzip(first), gzip(second)].concat(),
            zstd(&made.file),
            [zstd(first), zstd(second)].concat(),
            [skippable, zstd(&made.file)].concat(),
        ];
        for file in files {
            assert_eq!(read(&file).unwrap(), plain);
            assert_eq!(read_in_pieces(&file, 7, 2).unwrap(), plain);
        }
    }
}

#[test]
fn a_gzip_file_cut_after_every_byte_yields_what_was_stored_before() {
    let made = small_pcap();
    let file = stored_gzip(&made.file);
    let whole = read(&file).unwrap();
    for length in 0..file.len() {
        let there = length.saturating_sub(15).min(made.file.len());
        let Ok(reading) = read(&file[..length]) else {
            assert!(there < 4, "refused with {there} bytes");
            continue;
        };
        let record = made.starts.iter().rposition(|start| *start <= there).unwrap();
        assert_eq!(reading.frames, whole.frames[..record.saturating_sub(1)]);
        let EndOfFile::Cut { offset, found, expected, .. } = reading.end else {
            panic!("cut after {length}: {:?}", reading.end);
        };
        assert_eq!(offset, made.starts[record] as u64);
        assert_eq!(offset + found, there as u64);
        assert!(expected > found);
    }
}

#[test]
fn compressed_files_cut_after_every_byte_end_cut() {
    let made = small_ng();
    let whole = read(&made.file).unwrap();
    for file in [gzip(&made.file), zstd(&made.file)] {
        for length in 0..file.len() {
            let Ok(reading) = read(&file[..length]) else { continue };
            assert!(whole.frames.starts_with(&reading.frames));
            assert!(matches!(reading.end, EndOfFile::Cut { .. }), "{:?}", reading.end);
        }
    }
}

#[test]
fn a_stream_cut_between_two_packets_says_so() {
    let made = small_pcap();
    let file = stored_gzip(&made.file);
    let reading = read(&file[..file.len() - 1]).unwrap();
    assert_eq!(reading.frames.len(), 3);
    let expected = "byte 115: cut off: expected 1 bytes of the gzip stream, found 0";
    assert_eq!(reading.end.to_string(), expected);
}

#[test]
fn a_stream_that_fails_its_checksum_still_yields_its_packets() {
    let made = small_pcap();
    let mut gzip = stored_gzip(&made.file);
    let at = gzip.len() - 8;
    gzip[at] ^= 1;
    let mut zstd = zstd(&made.file);
    let at = zstd.len() - 1;
    zstd[at] ^= 1;
    for (file, name) in [(gzip, "gzip"), (zstd, "zstd")] {
        let reading = read(&file).unwrap();
        let EndOfFile::Corrupt { offset, damage: Damage::Compression { method, .. } } = reading.end
        else {
            panic!("{name}: {:?}", reading.end);
        };
        assert_eq!(method, name);
        if name == "gzip" {
            assert_eq!((reading.frames.len(), offset), (3, made.file.len() as u64));
        }
    }
}

#[test]
fn a_compressed_file_without_a_capture_is_refused() {
    let message = read(&gzip(b"plain text")).unwrap_err().to_string();
    assert_eq!(message, "made: byte 0: expected a pcap or pcapng magic number, found 70 6c 61 69");
    let message = read(&[0x1f, 0x8b, 99, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap_err().to_string();
    assert!(message.contains("found damage in the gzip stream"), "{message}");
}
