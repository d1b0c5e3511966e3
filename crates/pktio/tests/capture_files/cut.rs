//! Files cut off after every byte: the packets before the cut are all there, and the cut is where it is.

use tamis_pktio::EndOfFile;

use crate::made::{Made, read, read_in_pieces, small_ng, small_pcap};

/// Bytes without which a file is no capture.
const MAGIC: usize = 4;

/// Checks `made` cut after `length` bytes, of which `header` bytes must be there to know a record's length.
fn check(made: &Made, length: usize, header: usize, packets: &[usize]) {
    let whole = read(&made.file).unwrap();
    let Ok(reading) = read(&made.file[..length]) else {
        assert!(length < MAGIC, "refused with {length} bytes");
        return;
    };
    assert!(length >= MAGIC);
    let record = made.starts.iter().rposition(|start| *start <= length).unwrap();
    let complete = packets.iter().filter(|packet| **packet < record).count();
    assert_eq!(reading.frames, whole.frames[..complete], "cut after {length}");
    let (start, found) = (made.starts[record], length - made.starts[record]);
    match reading.end {
        EndOfFile::Clean => assert_eq!(found, 0),
        EndOfFile::Cut { offset, expected, found: left, .. } => {
            assert_eq!((offset, left), (start as u64, found as u64), "cut after {length}");
            assert!(found > 0);
            if found >= header {
                assert_eq!(expected, (made.starts[record + 1] - start) as u64);
            } else {
                assert!(expected > left);
            }
        }
        EndOfFile::Corrupt { .. } => panic!("a cut taken for damage after {length}"),
    }
}

#[test]
fn pcap_cut_after_every_byte() {
    let made = small_pcap();
    for length in 0..=made.file.len() {
        check(&made, length, 24, &[1, 2, 3]);
    }
    assert_eq!(read(&made.file).unwrap().frames.len(), 3);
}

#[test]
fn pcapng_cut_after_every_byte() {
    let made = small_ng();
    for length in 0..=made.file.len() {
        check(&made, length, 12, &[2, 4, 5]);
    }
    assert_eq!(read(&made.file).unwrap().frames.len(), 3);
}

#[test]
fn a_cut_is_the_same_however_the_bytes_arrive() {
    for made in [small_pcap(), small_ng()] {
        for length in MAGIC..=made.file.len() {
            let file = &made.file[..length];
            let whole = read(file).unwrap();
            for (capacity, step) in [(1, 1), (64, 3), (0, 50)] {
                assert_eq!(read_in_pieces(file, capacity, step).unwrap(), whole);
            }
        }
    }
}

#[test]
fn the_end_says_what_was_expected() {
    let made = small_pcap();
    let reading = read(&made.file[..60]).unwrap();
    let expected = "byte 50: cut off: expected 16 bytes of a packet record header, found 10";
    assert_eq!(reading.end.to_string(), expected);
    let reading = read(&made.file[..10]).unwrap();
    let expected = "byte 0: cut off: expected 24 bytes of a pcap file header, found 10";
    assert_eq!(reading.end.to_string(), expected);
}
