//! Datagrams in a TCP connection.

use overlay::Framed;
use proptest::prelude::*;

/// What came, of pieces of these lengths.
fn received(bytes: &[u8], cuts: &[usize]) -> Option<Vec<(u16, Vec<u8>)>> {
    let (mut framed, mut came, mut rest) = (Framed::default(), Vec::new(), bytes);
    for cut in cuts.iter().copied().chain([usize::MAX]) {
        let (piece, later) = rest.split_at(cut.min(rest.len()));
        framed.receive(piece, |port, datagram| came.push((port, datagram.to_vec()))).ok()?;
        rest = later;
    }
    Some(came)
}

proptest! {
    #[test]
    fn what_is_sent_comes_however_it_is_cut(
        sent in proptest::collection::vec(
            (any::<u16>(), proptest::collection::vec(any::<u8>(), 1..40)), 0..20),
        cuts in proptest::collection::vec(0..50_usize, 0..40),
        taken in 1..60_usize,
    ) {
        let (mut framed, mut bytes) = (Framed::default(), Vec::new());
        for (port, datagram) in &sent {
            prop_assert!(framed.send(*port, datagram));
            let some = framed.pending().len().min(taken);
            bytes.extend_from_slice(&framed.pending()[..some]);
            framed.sent(some);
        }
        bytes.extend_from_slice(framed.pending());
        prop_assert_eq!(received(&bytes, &cuts), Some(sent));
    }

    #[test]
    fn any_bytes_are_frames_or_none_and_take_no_more_than_came(
        bytes in proptest::collection::vec(prop_oneof![3 => 0..8_u8, 1 => any::<u8>()], 0..400),
        cuts in proptest::collection::vec(0..50_usize, 0..40),
    ) {
        let whole = received(&bytes, &[]);
        let cut = received(&bytes, &cuts);
        prop_assert_eq!(&whole, &cut, "the same however it is cut");
        let came: usize = whole.iter().flatten().map(|(_, it)| it.len() + 4).sum();
        prop_assert!(came <= bytes.len());
    }
}

#[test]
fn lengths_that_no_frame_has_are_refused_at_once() {
    for length in [0_u16, 1, 2, 9_219, u16::MAX] {
        let refused = Framed::default().receive(&length.to_le_bytes(), |_, _| panic!("no frame"));
        assert!(refused.is_err(), "{length}");
    }
    for length in [3_u16, 9_218] {
        let begun = Framed::default().receive(&length.to_le_bytes(), |_, _| panic!("no frame"));
        assert!(begun.is_ok(), "{length}");
    }
}

#[test]
fn who_reads_nothing_is_sent_a_bounded_number_of_bytes() {
    let mut framed = Framed::default();
    let kept = (0..10_000).filter(|_| framed.send(7, &[1; 1_400])).count();
    assert!((180..190).contains(&kept) && framed.pending().len() <= 257 << 10, "{kept}");
    framed.sent(100_000);
    assert!(framed.send(7, &[1; 1_400]));
    assert!(!framed.send(7, &[]) && !framed.send(7, &[0; 9_217]));
}
