//! A capture with its frames out of order, as rings that are read in turn leave it.
//!
//! Format: <https://www.tcpdump.org/manpages/pcap-savefile.5.html>, microseconds, in this machine's order of bytes.

use std::io;

/// The farthest that a frame moves, in microseconds.
const FARTHEST: u64 = 10_000;
const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u64::from(u32::from_ne_bytes(word)))
}

/// The same frames with the same times, each up to 10 ms from its place; those of one time stay in their order.
pub fn shuffled(capture: &[u8]) -> io::Result<Vec<u8>> {
    let cut = || io::Error::other("a capture that is cut off");
    let mut records = Vec::new();
    let mut at = FILE_HEADER;
    while at < capture.len() {
        let (seconds, micros) = word(capture, at).zip(word(capture, at + 4)).ok_or_else(cut)?;
        let time = seconds * 1_000_000 + micros;
        let len = word(capture, at + 8).ok_or_else(cut)?;
        let end = at + RECORD_HEADER + len as usize;
        let record = capture.get(at..end).ok_or_else(cut)?;
        records.push((time + fastrand::Rng::with_seed(time).u64(..FARTHEST), record));
        at = end;
    }
    records.sort_by_key(|&(place, _)| place);
    let header = capture.get(..FILE_HEADER).ok_or_else(cut)?;
    let mut bytes = Vec::with_capacity(capture.len());
    bytes.extend_from_slice(header);
    records.iter().for_each(|(_, record)| bytes.extend_from_slice(record));
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(times: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; FILE_HEADER];
        for (number, micros) in times.iter().enumerate() {
            for word in [1, *micros, 4, 4, number as u32] {
                bytes.extend_from_slice(&word.to_ne_bytes());
            }
        }
        bytes
    }

    fn frames(capture: &[u8]) -> Vec<(u64, u64)> {
        let records = capture[FILE_HEADER..].chunks(RECORD_HEADER + 4);
        records.map(|record| (word(record, 4).unwrap(), word(record, 16).unwrap())).collect()
    }

    #[test]
    fn frames_move_by_at_most_ten_milliseconds() {
        let times: Vec<u32> = (0..200).map(|number| number * 1000).collect();
        let moved = frames(&shuffled(&capture(&times)).unwrap());
        assert!(!moved.is_sorted(), "{moved:?}");
        let mut latest = 0;
        for &(time, _) in &moved {
            assert!(time + FARTHEST >= latest, "{time} after {latest}");
            latest = latest.max(time);
        }
        let mut back = moved.clone();
        back.sort_unstable();
        assert_eq!(back, frames(&capture(&times)));
    }

    #[test]
    fn frames_of_one_time_keep_their_order() {
        let moved = frames(&shuffled(&capture(&[5; 50])).unwrap());
        assert!(moved.is_sorted(), "{moved:?}");
    }

    #[test]
    fn a_cut_capture_is_refused() {
        let whole = capture(&[1, 2]);
        assert!(shuffled(&whole[..whole.len() - 1]).is_err());
    }
}
