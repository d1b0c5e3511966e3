//! What is sealed at one end is what is opened at the other: all of it, in its order, byte by byte.

use ::tunnel::HEADROOM;
use pktio::{LiveMeta, Pool};
use proptest::prelude::*;

use super::super::outer::OUTER;
use super::ends::{Came, Pair, assert_whole, cut};
use super::packets::{Memory, Numbers, burst, datagram, ping, segment, spec, superframe};

/// Chunks for frames with room to be sealed in, and without any.
fn pools() -> [Pool; 2] {
    [Pool::new(300, 2_200, 128), Pool::new(300, 70_000, 0)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Bursts in both directions; some of it comes joined, and is the same once it is cut.
    #[test]
    fn packets_come_whole_and_in_order(
        is_v6: bool,
        bursts in prop::collection::vec(prop::collection::vec(spec(), 1..60), 1..5),
    ) {
        let mut pair = Pair::established(is_v6);
        let [roomy, tight] = pools();
        let mut numbers = [Numbers::default(), Numbers::default()];
        for specs in bursts {
            for turn in [0, 1] {
                let ways = [(1, 2), (2, 1)][turn];
                let packets: Vec<_> =
                    specs.iter().map(|spec| (numbers[turn].packet(ways, *spec), spec.memory)).collect();
                let frames = packets.iter().map(|(bytes, memory)| (&bytes[..], *memory, Default::default()));
                let [from, to] = match turn {
                    0 => [&mut pair.a, &mut pair.b],
                    _ => [&mut pair.b, &mut pair.a],
                };
                let offered = from.send(burst(frames, &roomy, &tight));
                prop_assert_eq!((offered.sent, offered.waiting, offered.lost), (packets.len(), 0, vec![]));
                let came = to.receive_packets(packets.len());
                prop_assert!(came.lost.is_empty());
                let sent: Vec<_> = packets.into_iter().map(|(bytes, _)| bytes).collect();
                prop_assert_eq!(came.packets(), sent);
            }
        }
        assert_whole(&roomy, 0);
        assert_whole(&tight, 0);
        for end in [&pair.a, &pair.b] {
            assert_whole(&end.worker.pool, 0);
        }
    }

    /// Superframes are cut as [`packet::Superframe`] cuts them, and a superframe that fits a message comes as one
    /// again.
    #[test]
    fn superframes_come_as_their_pieces(
        is_v6: bool, is_tcp: bool, over_v6: bool, size in 1..1_360_u16, count in 2..700_usize, last in 1..1_360_usize,
    ) {
        let mut pair = Pair::established(over_v6);
        let [roomy, tight] = pools();
        let most = 65_535 - 80;
        let len = (usize::from(size) * (count - 1) + last.min(size.into())).min(most);
        let craft = if is_tcp { segment(1, 2, is_v6, len) } else { datagram(1, 2, is_v6, len) };
        let (bytes, live) = superframe(&craft, size);
        let pieces = cut(&bytes, Some(&live));
        let offered = pair.a.send(burst([(&bytes[..], Memory::Tight, live)], &roomy, &tight));
        prop_assert_eq!(offered.lost, vec![]);
        let messages = offered.sent;
        let came = pair.b.receive_packets(pieces.len());
        prop_assert_eq!(came.packets(), pieces);
        prop_assert!(came.lost.is_empty());
        prop_assert!(came.frames.len() <= messages.max(1) + 1, "{} of {}", came.frames.len(), messages);
        prop_assert!(came.frames.iter().all(|(_, found)| found.segments.is_none_or(|it| it.size == size)));
        assert_whole(&tight, 0);
        assert_whole(&pair.a.worker.pool, 0);
        assert_whole(&pair.b.worker.pool, 0);
    }
}

/// The kernel joins datagrams of one length whatever is inside, and packets of many flows stay apart.
#[test]
fn as_many_packets_as_can_come_at_once_have_room() {
    const AT_ONCE: u16 = 64;
    let mut pair = Pair::established(false);
    let packets: Vec<_> = (0..16 * AT_ONCE).map(|at| ping(1, 2, at)).collect();
    for some in packets.chunks(AT_ONCE.into()) {
        assert_eq!(pair.a.send_packets(some).lost, []);
    }
    let mut came = Came::default();
    pair.b.wait();
    pair.b.receive(&mut came);
    assert_eq!((came.packets(), came.lost), (packets, vec![]));
    assert!(pair.b.worker.opens.joins.is_whole());
    assert_whole(&pair.b.worker.pool, 0);
}

/// A stream of bulk data comes in few frames, each of many segments.
#[test]
fn a_stream_comes_joined() {
    let mut pair = Pair::established(false);
    let [roomy, tight] = pools();
    let (bytes, live) = superframe(&segment(1, 2, false, 60_000), 1_380);
    pair.a.send(burst([(&bytes[..], Memory::Tight, live)], &roomy, &tight));
    let came = pair.b.receive_packets(44);
    assert_eq!(came.frames.len(), 1);
    assert_eq!(came.frames[0].1.segments, live.segments);
    assert_eq!(came.frames[0].1.checksum, live.checksum);
}

/// A packet with room before it to be sealed in, and none after it.
#[test]
fn a_packet_that_fills_its_memory_is_copied() {
    let mut pair = Pair::established(false);
    let packet = datagram(1, 2, false, 101).frame();
    let full = Pool::new(1, OUTER + HEADROOM + packet.len(), OUTER + HEADROOM);
    let frames = [(&packet[..], Memory::Roomy, LiveMeta::default())];
    assert_eq!(pair.a.send(burst(frames, &full, &full)).lost, []);
    assert_eq!(pair.b.receive_packets(1).packets(), [packet]);
    assert_whole(&full, 0);
}
