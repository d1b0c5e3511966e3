//! Bytes that nobody meant: reading them ends, within bounds, the same way however they arrive.

use pktio::EndOfFile;
use proptest::prelude::*;

use super::made::{Order, Reading, read, read_in_pieces, small_ng, small_pcap};

/// What any reading of `length` bytes must satisfy.
fn check(reading: &Reading, length: usize) {
    let captured: usize = reading.frames.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(captured + 12 * reading.frames.len() <= length);
    assert!(
        reading.frames.iter().all(|(meta, _)| (meta.interface as usize) < reading.interfaces.len())
    );
    match reading.end {
        EndOfFile::Clean => {}
        EndOfFile::Cut { offset, found, .. } => assert_eq!(offset + found, length as u64),
        EndOfFile::Corrupt { offset, .. } => assert!(offset < length as u64),
    }
}

fn magics() -> impl Strategy<Value = Vec<u8>> {
    let little = Order::Little;
    let big = Order::Big;
    prop_oneof![
        Just(little.pcap_header(0xa1b2_c3d4, (2, 4), 1)),
        Just(big.pcap_header(0xa1b2_3c4d, (2, 3), 1)),
        Just(little.pcap_header(0xa1b2_cd34, (2, 4), 1)),
        Just(0xa1b2_c3d4_u32.to_be_bytes().to_vec()),
        Just(0x0a0d_0d0a_u32.to_be_bytes().to_vec()),
        Just([little.section(), little.interface(1, 0, &[])].concat()),
        Just([big.section(), big.interface(1, 100, &[])].concat()),
    ]
}

/// Small numbers are frequent in headers, so make them frequent here.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![3 => Just(0), 2 => 0..40_u8, 1 => any::<u8>()], 0..400)
}

proptest! {
    #[test]
    fn noise_after_a_magic_number_ends(magic in magics(), noise in noise()) {
        let file = [magic, noise].concat();
        if let Ok(reading) = read(&file) {
            check(&reading, file.len());
            prop_assert_eq!(read_in_pieces(&file, 50, 7).unwrap(), reading);
        }
    }

    #[test]
    fn a_damaged_file_ends(
        ng in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut file = if ng { small_ng().file } else { small_pcap().file };
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Ok(reading) = read(&file) {
            check(&reading, file.len());
            prop_assert_eq!(read_in_pieces(&file, 20, 1).unwrap(), reading);
        }
    }

    #[test]
    fn noise_after_a_compression_magic_ends(zstd in any::<bool>(), noise in noise()) {
        let magic = if zstd { &[0x28, 0xb5, 0x2f, 0xfd][..] } else { &[0x1f, 0x8b, 8, 0] };
        // Only that it returns: what noise decompresses to is nobody's business.
        let _ = read(&[magic, &noise].concat());
    }
}
