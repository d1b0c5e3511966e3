//! [`Forward`]: questions for names of other networks, which the servers that this host asked before answer.
//!
//! Contract: an answer is taken from the server that was asked, for a number that nobody else knows, and with the question as
//! it was asked. What waits is bounded.
//!
//! Source: resolv.conf(5), RFC 1035, RFC 6891 (what a program by TCP may receive).

use std::collections::HashMap;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use rustix::event::{PollFd, PollFlags};
use tunnel::Entropy;

use super::dns;
use super::programs::Asker;

/// What says which servers a host asks.
const FILE: &str = "/etc/resolv.conf";
/// Servers that are asked at most, as by the C library.
const SERVERS: usize = 3;
/// Questions that wait at most.
const WAITING: usize = 512;
/// Nanoseconds after which the next server is asked, or the question is given up.
const PATIENCE: u64 = 2_000_000_000;
/// Bytes of the longest answer.
const LONGEST: usize = 4_096;
/// Says that an answer may have [`LONGEST`] bytes.
const LONG_ANSWERS: [u8; 11] = [0, 0, 41, (LONGEST >> 8) as u8, 0, 0, 0, 0, 0, 0, 0];
/// Bytes of a head.
const HEAD: usize = 12;

/// A question that waits for its answer.
struct Question {
    asker: Asker,
    query: Vec<u8>,
    server: usize,
    until: u64,
}

/// The servers, and what they are asked.
pub(super) struct Forward {
    servers: Vec<UdpSocket>,
    waiting: HashMap<u16, Question>,
    entropy: Box<dyn Entropy>,
}

impl Forward {
    /// To the servers that the host asks now, but for its `own` addresses and a resolver on the host, which may
    /// ask this node.
    pub(super) fn open(own: &[IpAddr], entropy: Box<dyn Entropy>) -> Self {
        let text = fs::read_to_string(FILE).unwrap_or_default();
        let is_other = |server: &IpAddr| !server.is_loopback() && !own.contains(server);
        let servers = listed(&text).filter(is_other).take(SERVERS);
        Self::to(servers.map(|server| SocketAddr::new(server, 53)), entropy)
    }

    fn to(servers: impl Iterator<Item = SocketAddr>, entropy: Box<dyn Entropy>) -> Self {
        let opened = |server: SocketAddr| {
            let any: IpAddr = if server.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
            let socket = UdpSocket::bind((any, 0))?;
            socket.connect(server)?;
            socket.set_nonblocking(true)?;
            Ok::<_, io::Error>(socket)
        };
        // A host without IPv6 asks by IPv4.
        let servers = servers.filter_map(|server| opened(server).ok()).collect();
        Self { servers, waiting: HashMap::new(), entropy }
    }

    /// What is to be waited for.
    pub(super) fn sources(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.servers.iter().map(|socket| PollFd::new(socket, PollFlags::IN))
    }

    /// Asks the first server; whether there is one, and room for the question.
    pub(super) fn ask(&mut self, asker: Asker, query: Vec<u8>, now: u64) -> bool {
        if self.servers.is_empty() || self.waiting.len() >= WAITING {
            return false;
        }
        self.send(Question { asker, query, server: 0, until: now.saturating_add(PATIENCE) })
    }

    fn send(&mut self, question: Question) -> bool {
        let mut number = [0; 2];
        let drawn = self.entropy.fill(&mut number).map(|()| u16::from_be_bytes(number));
        let Some(drawn) = drawn.ok().filter(|drawn| !self.waiting.contains_key(drawn)) else {
            return false;
        };
        let mut asked = question.query.clone();
        let Some(head) = asked.first_chunk_mut::<HEAD>() else { return false };
        head[..2].copy_from_slice(&number);
        // A program by TCP takes any length.
        let is_stream = matches!(question.asker, Asker::Stream(_));
        if is_stream && head[11] == 0 {
            head[11] = 1;
            asked.extend(LONG_ANSWERS);
        }
        // What is lost is asked of the next one.
        let _ = self.servers.get(question.server).map(|server| server.send(&asked));
        self.waiting.insert(drawn, question);
        true
    }

    /// Answers for who asked. Where a server is silent the next one is asked, and after the last one that is the answer.
    pub(super) fn take(&mut self, now: u64) -> Vec<(Asker, Vec<u8>)> {
        let mut answers = Vec::new();
        let mut buffer = [0; LONGEST];
        for (number, server) in self.servers.iter().enumerate() {
            while let Some(length) = received(server, &mut buffer) {
                let Some(answer) = buffer.get_mut(..length).filter(|it| it.len() >= HEAD) else {
                    continue;
                };
                let drawn = u16::from_be_bytes([answer[0], answer[1]]);
                let is_its = |question: &Question| {
                    question.server == number && dns::is_answer(answer, &question.query)
                };
                if !self.waiting.get(&drawn).is_some_and(is_its) {
                    continue;
                }
                if let Some(question) = self.waiting.remove(&drawn) {
                    answer[..2].copy_from_slice(&question.query[..2]);
                    answers.push((question.asker, answer.to_vec()));
                }
            }
        }
        let late = self.waiting.iter().filter(|(_, question)| question.until <= now);
        let late: Vec<u16> = late.map(|(number, _)| *number).collect();
        for number in late {
            let Some(mut question) = self.waiting.remove(&number) else { continue };
            question.server += 1;
            question.until = now.saturating_add(PATIENCE);
            let (asker, query) = (question.asker, question.query.clone());
            if question.server >= self.servers.len() || !self.send(question) {
                let failure = dns::Answer::Failure("no server of this host answers");
                answers.extend(dns::write(&query, failure).map(|it| (asker, it)));
            }
        }
        answers
    }
}

/// The next datagram of a server. An error is that of what was sent before, to a server that is not there.
fn received(server: &UdpSocket, buffer: &mut [u8]) -> Option<usize> {
    match server.recv(buffer) {
        Ok(length) => Some(length),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => server.recv(buffer).ok(),
        Err(_) => None,
    }
}

/// The servers that a resolv.conf lists, in its order.
fn listed(text: &str) -> impl Iterator<Item = IpAddr> {
    text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == "nameserver").then(|| words.next()?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tunnel::SystemEntropy;

    use super::*;

    const HERE: (std::net::Ipv4Addr, u16) = (std::net::Ipv4Addr::LOCALHOST, 0);

    /// A question for example.org.
    const QUERY: [u8; 29] =
        *b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x03org\x00\x00\x01\x00\x01";

    fn server() -> UdpSocket {
        let socket = UdpSocket::bind(HERE).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        socket
    }

    fn forward(servers: &[&UdpSocket]) -> Forward {
        let servers: Vec<SocketAddr> = servers.iter().map(|it| it.local_addr().unwrap()).collect();
        Forward::to(servers.into_iter(), Box::new(SystemEntropy::new()))
    }

    fn asked(server: &UdpSocket) -> (Vec<u8>, SocketAddr) {
        let mut buffer = [0; 600];
        let (length, from) = server.recv_from(&mut buffer).unwrap();
        (buffer[..length].to_vec(), from)
    }

    fn taken(forward: &mut Forward) -> Vec<(Asker, Vec<u8>)> {
        for _ in 0..100 {
            let answers = forward.take(0);
            if !answers.is_empty() {
                return answers;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Vec::new()
    }

    #[test]
    fn an_answer_has_the_number_and_the_question_of_what_was_asked() {
        let one = server();
        let mut forward = forward(&[&one]);
        assert!(forward.ask(Asker::Stream(1), QUERY.to_vec(), 0));
        let (query, from) = asked(&one);
        assert_eq!((&query[2..11], query.len()), (&QUERY[2..11], QUERY.len() + 11), "long answers");
        let mut answer = query.clone();
        answer[2] |= 0x80;
        // Another number, another question, no answer at all: none is taken.
        for at in [0, 14, 2] {
            let mut wrong = answer.clone();
            wrong[at] ^= 0x81;
            one.send_to(&wrong, from).unwrap();
        }
        // From somebody else.
        server().send_to(&answer, from).unwrap();
        one.send_to(&answer, from).unwrap();
        let answers = taken(&mut forward);
        assert_eq!((answers.len(), answers[0].0), (1, Asker::Stream(1)));
        assert_eq!(answers[0].1[..2], QUERY[..2]);
        assert!(forward.waiting.is_empty());
    }

    #[test]
    fn a_server_that_is_silent_is_followed_by_the_next_one_and_then_nobody() {
        let (one, two) = (server(), server());
        let mut forward = forward(&[&one, &two]);
        assert!(forward.ask(Asker::Stream(1), QUERY.to_vec(), 0));
        asked(&one);
        assert!(forward.take(PATIENCE).is_empty());
        asked(&two);
        let failed = forward.take(2 * PATIENCE);
        assert_eq!((failed[0].1[3] & 0xf, forward.waiting.len()), (2, 0), "SERVFAIL");
        let nobody = &mut self::forward(&[]);
        assert!(!nobody.ask(Asker::Stream(1), QUERY.to_vec(), 0));
    }

    #[test]
    fn servers_are_those_of_the_file() {
        let text = "# nameserver 192.0.2.1\nnameserver 192.0.2.2\nsearch a\nnameserver  2001:db8::1 # x\nnameserver x\n";
        let expected: [IpAddr; 2] = ["192.0.2.2".parse().unwrap(), "2001:db8::1".parse().unwrap()];
        assert_eq!(listed(text).collect::<Vec<_>>(), expected);
    }
}
