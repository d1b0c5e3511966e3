//! A flow of packets whose numbers and bytes are known, from the first host to the second.

use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_recv_buffer_size_force;

use super::super::hosts::{Hosts, INSIDE};

/// Bytes that a packet of the flow carries, and of the packet when it is sealed: with headers it needs no padding, and no
/// other packet here is as long.
const PAYLOAD: usize = 404;
pub(in crate::tunnel) const SEALED: usize = PAYLOAD + 28 + 32;
const PORT: u16 = 5_002;
/// Who hears nothing for as long has heard everything.
const SILENCE: Duration = Duration::from_secs(2);

/// Sends packets at this interval; returns the numbers of received packets, in their order.
///
/// # Panics
/// If a received packet was not sent.
pub(in crate::tunnel) fn run(hosts: &Hosts, packets: u64, interval: Duration) -> Vec<u64> {
    let receiver = hosts.within(1, || UdpSocket::bind((INSIDE[1], PORT)).unwrap());
    // A slow receiver loses nothing.
    set_socket_recv_buffer_size_force(&receiver, 8 << 20).unwrap();
    let sender = hosts.within(0, || UdpSocket::bind((INSIDE[0], PORT)).unwrap());
    let receives = thread::spawn(move || receive(&receiver));
    let to: SocketAddr = (INSIDE[1].parse::<std::net::IpAddr>().unwrap(), PORT).into();
    let began = Instant::now();
    for number in 0..packets {
        sender.send_to(&payload(number), to).unwrap();
        let next = began + interval * (number as u32 + 1);
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    receives.join().unwrap()
}

fn receive(socket: &UdpSocket) -> Vec<u64> {
    socket.set_read_timeout(Some(SILENCE)).unwrap();
    let (mut came, mut bytes) = (Vec::new(), [0; 2 * PAYLOAD]);
    while let Ok(len) = socket.recv(&mut bytes) {
        let number = bytes.first_chunk().map_or(u64::MAX, |first| u64::from_be_bytes(*first));
        assert!(bytes[..len] == payload(number), "packet {number} is not as it was sent");
        came.push(number);
    }
    came
}

fn payload(number: u64) -> [u8; PAYLOAD] {
    let mut bytes = [0; PAYLOAD];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    let rest = bytes[8..].iter_mut().enumerate();
    rest.for_each(|(at, byte)| {
        *byte = (number.wrapping_mul(0x9e37_79b9).rotate_left(at as u32)) as u8
    });
    bytes
}
