//! Measurements, for `crates/lab/relay.sh`: one part of a scene of a relay and two hosts, in the namespace of who starts it. Which
//! part it is, and where, are words in `RELAY_PART`.

use std::env;
use std::io::Read;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use overlay::{Pair, Relay};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tunnel::PublicKey;

use super::*;

/// How long nothing arrives before a receiver ends.
const SILENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };
/// Bytes of what waits for a host.
const ROOM: usize = 16 << 20;

/// `trs AT A B WORKERS`: a relay with one path, between A and B. `plain AT A B`: a program that forwards between them by the same
/// sockets, and does nothing else. `send TO LENGTH TOGETHER SECONDS RATE CHANNEL`: sends from port 9001 datagrams of this
/// length, `TOGETHER` of them as one message, each after the header of a channel of TURN if there is one. `receive`: counts what arrives at
/// port 9002. `echo AT`: says hello to AT, and sends back what arrives. `delay TO COUNT`: how long echoes take.
#[test]
#[ignore = "a measurement"]
fn a_part() {
    let part = env::var("RELAY_PART").unwrap();
    let words: Vec<&str> = part.split(' ').collect();
    let at = |number: usize| words[number].parse::<SocketAddr>().unwrap();
    let count = |number: usize| words[number].parse::<usize>().unwrap();
    match words[0] {
        "trs" => trs(at(1), [at(2), at(3)], count(4)),
        "plain" => plain(at(1), [at(2), at(3)]),
        "send" => {
            send_many(at(1), (count(2), count(3)), (count(4), count(5)), words.get(6).copied());
        }
        "receive" => receive(),
        "echo" => echo(at(1)),
        "delay" => delay(at(1), count(2)),
        other => panic!("{other}"),
    }
}

fn until_told() {
    println!("ready");
    let _ = std::io::stdin().read(&mut [0]);
}

fn trs(at: SocketAddr, sources: [SocketAddr; 2], workers: usize) {
    let pair = Pair::of(&"a".parse().unwrap(), &"b".parse().unwrap());
    let mut relay = Relay::default();
    relay.join(&pair, [[1; 32], [2; 32]].map(PublicKey::new), at.port());
    relay.restore(&pair, sources.map(Some));
    let ports = at.port()..=at.port();
    let relaying = Relaying { ports, workers, forwarding: relay.forwarding() };
    let workers = Workers::start(&relaying, at.ip(), Clock::start()).unwrap();
    until_told();
    drop(workers);
    println!("{:?}", relay.counts());
}

fn plain(at: SocketAddr, [a, b]: [SocketAddr; 2]) {
    let config = DatagramConfig { port: at.port(), buffer: BUFFER, ..DatagramConfig::default() };
    let socket = DatagramSocket::bind_each(&config, at.ip(), 1).unwrap().remove(0);
    let (pool, mut spare) = (Pool::new(MESSAGES, LONGEST, 0), Vec::new());
    let (mut receive, mut send) = (RecvBatch::new(MESSAGES), SendBatch::default());
    let mut came = Vec::new();
    println!("ready");
    loop {
        poll(&mut [PollFd::new(&socket, PollFlags::IN)], None).unwrap();
        pool.fill(&mut spare, MESSAGES);
        socket.recv(&mut receive, &mut spare, |frame, it| came.push((frame, it))).unwrap();
        let messages = came.iter().map(|(frame, it): &(FrameBuf, Arrived)| {
            let to = if it.from == a { b } else { a };
            message((frame.bytes(), it.segment, it.at, it.tos), to)
        });
        socket.send(&mut send, messages);
        came.clear();
    }
}

fn host(port: u16) -> DatagramSocket {
    let config = DatagramConfig { port, buffer: ROOM, ..DatagramConfig::default() };
    let any = IpAddr::from([0, 0, 0, 0]);
    DatagramSocket::bind_each(&config, any, 1).unwrap().remove(0)
}

/// Sends for some seconds, at a rate of datagrams per second, 0 for as fast as it goes.
fn send_many(
    to: SocketAddr,
    (length, together): (usize, usize),
    (seconds, rate): (usize, usize),
    peer: Option<&str>,
) {
    let socket = host(9_001);
    let header = peer.map_or(Vec::new(), |peer| {
        let channel = turn::channel(&socket, to, peer.parse().unwrap());
        [channel.to_be_bytes(), (length as u16).to_be_bytes()].concat()
    });
    let datagram = [header, vec![7; length]].concat();
    let bytes = datagram.repeat(together);
    let segment = datagram.len() as u16;
    let messages =
        vec![Message { bytes: &bytes, segment, to, from: None, tos: 0 }; 32 / together.min(32)];
    let (mut batch, since, mut sent) = (SendBatch::default(), Instant::now(), 0_u64);
    while since.elapsed() < Duration::from_secs(seconds as u64) {
        let due = since.elapsed().as_secs_f64() * rate as f64;
        if rate > 0 && sent as f64 > due {
            std::thread::sleep(Duration::from_micros(200));
            continue;
        }
        // Alone, datagrams are messages of their own.
        for message in &messages {
            sent += socket.send(&mut batch, [*message]).datagrams;
        }
    }
    println!("{sent}");
}

fn receive() {
    let socket = host(9_002);
    let (pool, mut spare) = (Pool::new(MESSAGES, LONGEST, 0), Vec::new());
    let mut batch = RecvBatch::new(MESSAGES);
    let (mut datagrams, mut bytes, mut first, mut last) = (0, 0, None, Instant::now());
    println!("ready");
    let mut wait = Timespec { tv_sec: 20, tv_nsec: 0 };
    while poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&wait)).unwrap() > 0 {
        wait = SILENCE;
        pool.fill(&mut spare, MESSAGES);
        let each = |frame: FrameBuf, it: Arrived| {
            datagrams += count(frame.bytes(), it.segment);
            bytes += frame.bytes().len();
        };
        socket.recv(&mut batch, &mut spare, each).unwrap();
        last = Instant::now();
        first = first.or(Some(last));
    }
    let seconds = first.map_or(0.0, |first| (last - first).as_secs_f64());
    println!("{datagrams} {bytes} {seconds:.3} {}", socket.overruns().unwrap());
}

fn echo(at: SocketAddr) {
    let socket = UdpSocket::bind(("0.0.0.0", 9_002)).unwrap();
    socket.send_to(b"hello", at).unwrap();
    println!("ready");
    let mut buffer = [0; 2_000];
    while let Ok((length, from)) = socket.recv_from(&mut buffer) {
        socket.send_to(&buffer[..length], from).unwrap();
    }
}

/// Median and 99th percentile of the time that echoes take, in microseconds.
fn delay(to: SocketAddr, count: usize) {
    let socket = UdpSocket::bind(("0.0.0.0", 9_001)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut times = Vec::new();
    for _ in 0..count {
        let since = Instant::now();
        socket.send_to(&[7; 200], to).unwrap();
        if socket.recv(&mut [0; 2_000]).is_ok() {
            times.push(since.elapsed().as_secs_f64() * 1e6);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    times.sort_by(f64::total_cmp);
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
    println!("{:.1} {:.1} {}", at(50), at(99), times.len());
}

/// As much of TURN (RFC 8656) as a measurement needs, of a server that asks for no credentials.
mod turn {
    use super::*;

    const COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];
    const CHANNEL: u16 = 0x4000;

    /// Allocates, and binds a channel to a peer.
    pub(super) fn channel(socket: &DatagramSocket, server: SocketAddr, peer: SocketAddr) -> u16 {
        // REQUESTED-TRANSPORT: UDP.
        ask(socket, server, 3, &[0, 0x19, 0, 4, 17, 0, 0, 0]);
        let IpAddr::V4(ip) = peer.ip() else { panic!("{peer}") };
        let mut address = [0, 1, 0, 0, 0, 0, 0, 0];
        address[2..4].copy_from_slice(&(peer.port() ^ 0x2112).to_be_bytes());
        for (to, (byte, mask)) in address[4..].iter_mut().zip(ip.octets().iter().zip(COOKIE)) {
            *to = byte ^ mask;
        }
        let number = [[0, 0x0c, 0, 4], [0x40, 0, 0, 0]].concat();
        ask(socket, server, 9, &[&number[..], &[0, 0x12, 0, 8], &address].concat());
        CHANNEL
    }

    /// A request of this method, whose success is awaited.
    fn ask(socket: &DatagramSocket, server: SocketAddr, method: u16, attributes: &[u8]) {
        let length = attributes.len() as u16;
        let head = [method.to_be_bytes(), length.to_be_bytes()].concat();
        let bytes = [&head[..], &COOKIE, &[method as u8; 12], attributes].concat();
        let message = Message { bytes: &bytes, segment: 0, to: server, from: None, tos: 0 };
        socket.send(&mut SendBatch::default(), [message]);
        let wait = Timespec { tv_sec: 5, tv_nsec: 0 };
        assert_eq!(poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&wait)).unwrap(), 1);
        let (pool, mut spare, mut answers) = (Pool::new(4, 2_048, 0), Vec::new(), Vec::new());
        pool.fill(&mut spare, 4);
        let each = |frame: FrameBuf, _| answers.push(frame.bytes().to_vec());
        socket.recv(&mut RecvBatch::new(4), &mut spare, each).unwrap();
        let success = (method | 0x100).to_be_bytes();
        assert!(answers.iter().any(|it| it.starts_with(&success)), "{method}: {answers:02x?}");
    }
}
