//! Real traffic between two kernels, joined by two ports: every byte arrives, whatever is left to whom.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use super::joined::{Joined, Seen, Way};
use super::sys;

const STREAM_BYTES: usize = 16 << 20;
const PORT: u16 = 5001;
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

fn address(is_v4: bool, host: u8) -> SocketAddr {
    let v4 = || IpAddr::V4(Ipv4Addr::new(10, 77, 0, host));
    let v6 = || IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, host.into()));
    SocketAddr::new(if is_v4 { v4() } else { v6() }, PORT)
}

/// Bytes that repeat nowhere near: a piece in the wrong place shows.
pub(crate) fn stream(seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut word = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_ne_bytes()
    };
    (0..STREAM_BYTES / 8).flat_map(|_| word()).collect()
}

/// Sends one stream and receives the other at the same time.
pub(crate) fn exchange(connection: &TcpStream, sent: Vec<u8>, expected: &[u8]) {
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    connection.set_write_timeout(Some(PATIENCE)).unwrap();
    let mut writer = connection.try_clone().unwrap();
    let sender = thread::spawn(move || {
        writer.write_all(&sent).unwrap();
        writer.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let mut received = Vec::with_capacity(expected.len());
    (&*connection).read_to_end(&mut received).unwrap();
    sender.join().unwrap();
    assert!(received == expected, "the stream is another: {} bytes", received.len());
}

/// 16 MiB each way, compared byte for byte.
fn tcp(way: Way, mtu: usize, is_v4: bool) -> Option<Seen> {
    let joined = Joined::new(way, mtu)?;
    let listener = joined.ends[1].run(move || TcpListener::bind(address(is_v4, 2)).unwrap());
    let server = thread::spawn(move || {
        let (connection, _) = listener.accept().unwrap();
        exchange(&connection, stream(2), &stream(1));
    });
    let connection = joined.ends[0]
        .run(move || TcpStream::connect_timeout(&address(is_v4, 2), PATIENCE).unwrap());
    exchange(&connection, stream(1), &stream(2));
    server.join().unwrap();
    let seen = joined.end();
    for stats in seen.stats {
        assert_eq!((stats.rx_lost, stats.tx_too_long, stats.tx_refused), (0, 0, 0), "{seen:?}");
    }
    let sums = |pick: fn(&pktio::Stats) -> u64| seen.stats.iter().map(pick).sum::<u64>();
    let (rx, tx) = (sums(|stats| stats.rx_frames), sums(|stats| stats.tx_frames));
    assert!(if way == Way::Cut { tx > rx } else { tx == rx }, "{seen:?}");
    Some(seen)
}

#[test]
fn tcp_arrives_when_the_kernel_finishes_its_frames() {
    for (mtu, is_v4) in [(1400, true), (9000, false)] {
        let Some(seen) = tcp(Way::Finished, mtu, is_v4) else { return };
        assert_eq!((seen.superframes, seen.unfinished), (0, 0));
        assert_eq!(seen.longest, [mtu; 2]);
    }
}

#[test]
fn tcp_arrives_in_superframes_passed_on_whole() {
    for (mtu, is_v4) in [(1400, true), (1400, false), (9000, true), (9000, false)] {
        let Some(seen) = tcp(Way::Whole, mtu, is_v4) else { return };
        assert!(seen.superframes > 0 && seen.unfinished > seen.superframes, "{seen:?}");
        assert!(seen.longest[0] > mtu, "{seen:?}");
        assert_eq!(seen.longest[0], seen.longest[1]);
    }
}

#[test]
fn tcp_arrives_in_segments_that_are_cut_here() {
    for (mtu, is_v4) in [(1400, true), (1400, false), (9000, true), (9000, false)] {
        let Some(seen) = tcp(Way::Cut, mtu, is_v4) else { return };
        assert!(seen.superframes > 0 && seen.longest[0] > mtu, "{seen:?}");
        assert_eq!(seen.longest[1], mtu, "a segment fills its frame");
    }
}

/// One call of the sender for each `sizes`, cut to 1,000 bytes each.
fn datagrams(way: Way, is_v4: bool) -> Option<Seen> {
    let joined = Joined::new(way, 1400)?;
    let receiver = joined.ends[1].run(move || UdpSocket::bind(address(is_v4, 2)).unwrap());
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let sender = joined.ends[0].run(move || UdpSocket::bind(address(is_v4, 1)).unwrap());
    sender.connect(address(is_v4, 2)).unwrap();
    if let Err(error) = sys::set_udp_segment(&sender, 1000) {
        eprintln!("SKIPPED: UDP_SEGMENT: {error}");
        return None;
    }
    let payload = &stream(3)[..30_500];
    for bytes in [30_500, 1_000, 999, 1_001, 2_000] {
        let sent = &payload[..bytes];
        assert_eq!(sender.send(sent).unwrap(), bytes);
        for expected in sent.chunks(1000) {
            let mut room = [0; 2000];
            let length = receiver.recv(&mut room).unwrap();
            assert!(&room[..length] == expected, "{length} bytes of {}", expected.len());
        }
    }
    Some(joined.end())
}

#[test]
fn datagrams_sent_at_once_arrive_one_by_one() {
    for way in [Way::Finished, Way::Whole, Way::Cut] {
        for is_v4 in [true, false] {
            let Some(seen) = datagrams(way, is_v4) else { return };
            assert_eq!(seen.superframes > 0, way != Way::Finished, "{seen:?}");
        }
    }
}

#[test]
fn pings_are_answered() {
    for way in [Way::Finished, Way::Whole, Way::Cut] {
        let Some(joined) = Joined::new(way, 1400) else { return };
        for (option, host) in [("-4", "10.77.0.2"), ("-6", "fd77::2")] {
            for size in [56, 1300, 4000] {
                let said = joined.ends[0]
                    .command(&format!("ping {option} -n -c 3 -i 0.01 -W 10 -s {size} {host}"));
                assert!(said.contains(" 0% packet loss"), "{said}");
            }
        }
        joined.end();
    }
}
