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
/// The first port of the first host; the other host's is the next one.
const FIRST: u16 = 9_001;

/// `trs AT A B WORKERS FLOWS`: a relay with as many paths between A and B, each at the next odd port of A, and the next even one of B.
/// `plain AT A B WORKERS FLOWS`: threads that forward between them by the same sockets, and do nothing else. `send TO LENGTH TOGETHER SECONDS
/// RATE FLOWS HEAD`: sends from the ports from 9001 on datagrams of this length, `TOGETHER` of them as one message. `receive FLOWS`: counts what
/// arrives at the ports from 9002 on. `echo AT`: says hello to AT, and sends back what arrives. `delay TO COUNT HEAD`: how long echoes take.
/// HEAD is what stands before each datagram: `turn:PEER` asks for a channel, `hex:BYTES` are bytes, `none` is nothing.
#[test]
#[ignore = "a measurement"]
fn a_part() {
    let part = env::var("RELAY_PART").unwrap();
    let words: Vec<&str> = part.split(' ').collect();
    let at = |number: usize| words[number].parse::<SocketAddr>().unwrap();
    let count = |number: usize| words[number].parse::<usize>().unwrap();
    match words[0] {
        "trs" => trs(at(1), [at(2), at(3)], count(4), count(5)),
        "plain" => plain(at(1), at(2), count(4)),
        "send" => {
            let sockets: Vec<_> = (0..count(6)).map(|flow| host(FIRST + 2 * flow as u16)).collect();
            let datagram =
                [head(words[7], &sockets[0], at(1), count(2)), vec![7; count(2)]].concat();
            send_many(&sockets, at(1), (&datagram, count(3)), (count(4), count(5)));
        }
        "receive" => receive(count(1)),
        "echo" => echo(at(1)),
        "delay" => delay(at(1), count(2), words[3]),
        other => panic!("{other}"),
    }
}

fn until_told() {
    println!("ready");
    let _ = std::io::stdin().read(&mut [0]);
}

fn trs(at: SocketAddr, hosts: [SocketAddr; 2], workers: usize, flows: usize) {
    let mut relay = Relay::default();
    for flow in 0..flows as u8 {
        let name = |host: &str| format!("{host}{flow}").parse().unwrap();
        let pair = Pair::of(&name("a"), &name("b"));
        relay.join(
            &pair,
            [[1, flow], [2, flow]].map(|of| PublicKey::new([of; 16].concat().try_into().unwrap())),
            at.port(),
        );
        let source =
            |host: SocketAddr| SocketAddr::new(host.ip(), host.port() + 2 * u16::from(flow));
        relay.restore(&pair, hosts.map(|host| Some(source(host))));
    }
    let ports = at.port()..=at.port();
    let relaying = Relaying { ports, workers, forwarding: relay.forwarding() };
    let workers = Workers::start(&relaying, at.ip(), Clock::start()).unwrap();
    until_told();
    drop(workers);
    println!("{:?}", relay.counts());
}

/// The other end of a flow is known without a look: its port is the next one of the other host.
fn plain(at: SocketAddr, a: SocketAddr, workers: usize) {
    let config = DatagramConfig { port: at.port(), buffer: BUFFER, ..DatagramConfig::default() };
    let b = IpAddr::from([10, 0, 2, 1]);
    let other = move |from: SocketAddr| match from.ip() == a.ip() {
        true => SocketAddr::new(b, from.port() + 1),
        false => SocketAddr::new(a.ip(), from.port() - 1),
    };
    let sockets = DatagramSocket::bind_each(&config, at.ip(), workers).unwrap();
    sockets.into_iter().for_each(|socket| drop(thread::spawn(move || forward(&socket, other))));
    until_told();
}

fn forward(socket: &DatagramSocket, other: impl Fn(SocketAddr) -> SocketAddr) {
    let (pool, mut spare) = (Pool::new(MESSAGES, LONGEST, 0), Vec::new());
    let (mut receive, mut send) = (RecvBatch::new(MESSAGES), SendBatch::default());
    let mut came = Vec::new();
    loop {
        poll(&mut [PollFd::new(socket, PollFlags::IN)], None).unwrap();
        pool.fill(&mut spare, MESSAGES);
        socket.recv(&mut receive, &mut spare, |frame, it| came.push((frame, it))).unwrap();
        let messages = came.iter().map(|(frame, it): &(FrameBuf, Arrived)| {
            message((frame.bytes(), it.segment, it.at, it.tos), other(it.from))
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

/// What stands before each datagram of this length.
fn head(word: &str, socket: &DatagramSocket, server: SocketAddr, length: usize) -> Vec<u8> {
    match word.split_once(':') {
        Some(("turn", peer)) => {
            let channel = turn::channel(socket, server, peer.parse().unwrap());
            [channel.to_be_bytes(), (length as u16).to_be_bytes()].concat()
        }
        Some(("hex", bytes)) => {
            let byte = |at| u8::from_str_radix(&bytes[at..at + 2], 16).unwrap();
            (0..bytes.len()).step_by(2).map(byte).collect()
        }
        _ => Vec::new(),
    }
}

/// Sends for some seconds by all sockets in turn, at a rate of datagrams per second, 0 for as fast as it goes.
fn send_many(
    sockets: &[DatagramSocket],
    to: SocketAddr,
    (datagram, together): (&[u8], usize),
    (seconds, rate): (usize, usize),
) {
    let bytes = datagram.repeat(together);
    let segment = if together > 1 { datagram.len() as u16 } else { 0 };
    let message = Message { bytes: &bytes, segment, to, from: None, tos: 0 };
    let (mut batch, since, mut sent) = (SendBatch::default(), Instant::now(), 0_u64);
    while since.elapsed() < Duration::from_secs(seconds as u64) {
        let due = since.elapsed().as_secs_f64() * rate as f64;
        if rate > 0 && sent as f64 > due {
            thread::sleep(Duration::from_micros(200));
            continue;
        }
        for socket in sockets {
            // Messages of one call would become one message.
            for _ in 0..32_usize.div_ceil(together) {
                sent += socket.send(&mut batch, [message]).datagrams;
            }
        }
    }
    println!("{sent}");
}

fn receive(flows: usize) {
    let sockets: Vec<_> = (0..flows).map(|flow| host(FIRST + 1 + 2 * flow as u16)).collect();
    let (pool, mut spare) = (Pool::new(MESSAGES, LONGEST, 0), Vec::new());
    let mut batch = RecvBatch::new(MESSAGES);
    let (mut datagrams, mut bytes, mut first, mut last) = (0, 0, None, Instant::now());
    println!("ready");
    let mut wait = Timespec { tv_sec: 20, tv_nsec: 0 };
    let mut watched: Vec<_> = sockets.iter().map(|it| PollFd::new(it, PollFlags::IN)).collect();
    while poll(&mut watched, Some(&wait)).unwrap() > 0 {
        wait = SILENCE;
        for (socket, _) in sockets.iter().zip(&watched).filter(|(_, it)| !it.revents().is_empty()) {
            pool.fill(&mut spare, MESSAGES);
            let each = |frame: FrameBuf, it: Arrived| {
                datagrams += count(frame.bytes(), it.segment);
                bytes += frame.bytes().len();
            };
            socket.recv(&mut batch, &mut spare, each).unwrap();
        }
        last = Instant::now();
        first = first.or(Some(last));
    }
    let seconds = first.map_or(0.0, |first| (last - first).as_secs_f64());
    let overruns: u32 = sockets.iter().map(|it| it.overruns().unwrap()).sum();
    println!("{datagrams} {bytes} {seconds:.3} {overruns}");
}

fn echo(at: SocketAddr) {
    let socket = UdpSocket::bind(("0.0.0.0", FIRST + 1)).unwrap();
    socket.send_to(b"hello", at).unwrap();
    println!("ready");
    let mut buffer = [0; 2_000];
    while let Ok((length, from)) = socket.recv_from(&mut buffer) {
        socket.send_to(&buffer[..length], from).unwrap();
    }
}

/// Median and 99th percentile of the time that echoes take, in microseconds.
fn delay(to: SocketAddr, count: usize, word: &str) {
    let socket = host(FIRST);
    let bytes = [head(word, &socket, to, 200), vec![7; 200]].concat();
    let message = Message { bytes: &bytes, segment: 0, to, from: None, tos: 0 };
    let (mut batch, mut times) = (SendBatch::default(), Vec::new());
    for _ in 0..count {
        let since = Instant::now();
        socket.send(&mut batch, [message]);
        if is_ready(&socket, Timespec { tv_sec: 0, tv_nsec: 500_000_000 }) {
            times.push(since.elapsed().as_secs_f64() * 1e6);
            arrived(&socket);
        }
        thread::sleep(Duration::from_millis(1));
    }
    times.sort_by(f64::total_cmp);
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
    println!("{:.1} {:.1} {}", at(50), at(99), times.len());
}

fn is_ready(socket: &DatagramSocket, wait: Timespec) -> bool {
    poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&wait)).unwrap() > 0
}

fn arrived(socket: &DatagramSocket) -> Vec<Vec<u8>> {
    let (pool, mut spare, mut all) = (Pool::new(4, 2_048, 0), Vec::new(), Vec::new());
    pool.fill(&mut spare, 4);
    let each = |frame: FrameBuf, _| all.push(frame.bytes().to_vec());
    socket.recv(&mut RecvBatch::new(4), &mut spare, each).unwrap();
    all
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
        assert!(is_ready(socket, Timespec { tv_sec: 5, tv_nsec: 0 }), "{method}");
        let answers = arrived(socket);
        let success = (method | 0x100).to_be_bytes();
        assert!(answers.iter().any(|it| it.starts_with(&success)), "{method}: {answers:02x?}");
    }
}
