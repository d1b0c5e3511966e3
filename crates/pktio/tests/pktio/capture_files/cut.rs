//! Files cut off after every byte: the packets before the cut are all there, and the cut is where it is.
//! A medium that fails in the middle is an error instead.

use std::io::{self, Cursor, Read};

use pktio::{Burst, CaptureReader, EndOfFile, Port};

use super::made::{Made, read, read_in_pieces, small_ng, small_pcap};

/// Bytes without which a file is no capture.
const MAGIC: usize = 4;

/// Checks `made` cut after `length` bytes, of which `header` bytes must be there to know a record's length.
fn check(made: &Made, length: usize, header: usize, packets: &[usize]) {
    let whole = read(&made.file).expect("a whole file opens");
    let Ok(reading) = read(&made.file[..length]) else {
        assert!(length < MAGIC, "refused with {length} bytes");
        return;
    };
    assert!(length >= MAGIC);
    let record = made.starts.iter().rposition(|start| *start <= length).expect("the first is 0");
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

/// Yields its first part, fails once, and then yields the rest.
struct FailingOnce {
    parts: Vec<Cursor<Vec<u8>>>,
}

impl Read for FailingOnce {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.parts[0].read(into)?;
        if length > 0 || self.parts.len() == 1 {
            return Ok(length);
        }
        self.parts.remove(0);
        Err(io::Error::other("medium lost"))
    }
}

#[test]
fn a_failing_medium_is_an_error_and_reading_can_go_on() {
    for made in [small_pcap(), small_ng()] {
        let whole = read(&made.file).unwrap();
        for length in 24..made.file.len() {
            let (first, rest) = made.file.split_at(length);
            let parts = vec![Cursor::new(first.to_vec()), Cursor::new(rest.to_vec())];
            let mut reader = CaptureReader::new("tape", FailingOnce { parts }).unwrap();
            let mut burst = Burst::new();
            let (mut frames, mut errors) = (Vec::new(), Vec::new());
            while reader.end().is_none() {
                match reader.rx_burst(&mut burst) {
                    Ok(_) => frames.extend(burst.iter().map(|f| (*f.meta, f.bytes.to_vec()))),
                    Err(error) => errors.push(error.to_string()),
                }
            }
            assert_eq!(frames, whole.frames);
            assert_eq!(errors, [format!("tape: byte {length}: medium lost")]);
        }
    }
}

#[test]
fn what_cannot_be_opened_says_so_by_name() {
    let message = |path| CaptureReader::open(path).err().map(|error| error.to_string());
    let absent = message("/nonexistent/capture.pcap").unwrap();
    assert!(absent.starts_with("/nonexistent/capture.pcap: "), "{absent}");
    let directory = env!("CARGO_MANIFEST_DIR");
    assert!(message(directory).unwrap().starts_with(directory));
}
