//! The two system calls played: kernels that refuse what real ones refuse elsewhere, or on another day.

mod received;
mod sent;

use super::{DatagramConfig, DatagramSocket, Message, RecvBatch, SendBatch};
use crate::pool::Pool;

/// On a host without IPv6 it is a socket of IPv4, and says so to nobody.
#[test]
fn a_socket_of_ipv4_alone_is_no_other() {
    let open = || DatagramSocket::open(&DatagramConfig::default(), false, 0).unwrap().0;
    let (from, to) = (open(), open());
    let at = |socket: &DatagramSocket| ([127, 0, 0, 1], socket.port()).into();
    let message = Message { bytes: b"0123456789", segment: 4, to: at(&to), from: None, tos: 0x2e };
    let v6 = Message { to: "[::1]:9".parse().unwrap(), ..message };
    let sent = from.send(&mut SendBatch::default(), [v6, message]);
    assert_eq!((sent.taken, sent.datagrams, sent.refused), (2, 3, 3));
    let (mut spare, mut came) = (Vec::new(), Vec::new());
    Pool::new(4, 100, 0).fill(&mut spare, 4);
    let mut batch = RecvBatch::new(4);
    let count = to.recv(&mut batch, &mut spare, |frame, arrived| {
        came.extend(frame.bytes().chunks(arrived.segment).map(<[u8]>::to_vec));
        assert_eq!((arrived.from, arrived.tos), (at(&from), 0x2e));
        assert_eq!(arrived.at.map(|at| at.address), Some(at(&to).ip()));
    });
    assert!(count.unwrap() > 0);
    assert_eq!(came, [b"0123".as_slice(), b"4567", b"89"]);
}

/// Not even to a program that would share it.
#[test]
fn a_port_is_shared_with_nobody_once_it_is_bound() {
    let config = DatagramConfig::default();
    let (main, others) = DatagramSocket::open(&config, false, 2).unwrap();
    let stranger = DatagramSocket::unbound(&config, false).unwrap();
    stranger.share(true).unwrap();
    assert!(stranger.bound(main.port()).is_err());
    drop(others);
}
