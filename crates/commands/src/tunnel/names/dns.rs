//! Messages of DNS: what a program asks of this node, and the answers.
//!
//! Source: RFC 1035, RFC 3596 (AAAA), RFC 8914 (why there is no answer). Names of the network's domain are answered, as are its addresses; anything else is
//! refused, never answered with nothing: a host that asks other servers, too, goes on with those.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use overlay::{Name as NodeName, below};
use simple_dns::rdata::{A, AAAA, OPT, OPTCode, PTR, RData};
use simple_dns::{
    CLASS, Name, OPCODE, Packet, PacketFlag, QCLASS, QTYPE, RCODE, ResourceRecord, TYPE,
};

/// The port of servers of names.
pub(super) const PORT: u16 = 53;

/// Bytes of the longest query: what a message by UDP may have without more being agreed.
pub(super) const LONGEST: usize = 512;

/// Seconds for which an answer may be kept: shorter than the directory takes to change its mind.
const TTL: u32 = 10;

/// The option that says why there is no answer (RFC 8914), and its reason that is in words.
const EXTENDED_ERROR: u16 = 15;
const OTHER: u16 = 0;

/// Bytes of such words.
const LONGEST_REASON: usize = 160;

/// Bytes of a head: identification, flags, four counts.
const HEAD: usize = 12;
/// The longest label of a name; what is higher is a pointer, or of no use.
const LONGEST_LABEL: u8 = 63;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asked {
    /// A node, and which of its addresses.
    Node(NodeName, Wanted),
    /// The name of an address.
    Pointer(IpAddr),
    /// A name of the domain that is no node's.
    Nobody,
    /// The domain itself.
    Domain,
    /// A name of another domain.
    Foreign,
    /// Something that nobody asks here.
    NotImplemented,
}

/// What of a node is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The IPv4 address.
    V4,
    /// The IPv6 address.
    V6,
    /// What it does not have.
    Other,
}

/// What is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer<'a> {
    /// The addresses of a node, of which the wanted one is named.
    Addresses(Ipv4Addr, Ipv6Addr),
    /// A name.
    Pointer(&'a str),
    /// There is such a name, and nothing of what is wanted.
    Nothing,
    /// There is no such name.
    NoSuchName,
    /// The way to the node is not known now, and why.
    Failure(&'a str),
    /// Another server is to be asked.
    Refused,
    /// This is not answered here.
    NotImplemented,
}

/// Reads a query: nothing for what is none, and gets no answer.
pub(super) fn read(query: &[u8], domain: &str) -> Option<Asked> {
    let packet = parse(query)?;
    let question = packet.questions.first()?;
    if packet.opcode() != OPCODE::StandardQuery {
        return Some(Asked::NotImplemented);
    }
    if question.qclass != QCLASS::CLASS(CLASS::IN) {
        return Some(Asked::Foreign);
    }
    let name = question.qname.to_string();
    if let Some(address) = pointer(&name) {
        return Some(Asked::Pointer(address));
    }
    let wanted = match question.qtype {
        QTYPE::TYPE(TYPE::A) => Wanted::V4,
        QTYPE::TYPE(TYPE::AAAA) => Wanted::V6,
        _ => Wanted::Other,
    };
    Some(match below(domain, &name) {
        None => Asked::Foreign,
        Some(Ok(node)) => Asked::Node(node, wanted),
        Some(Err(_)) if name.eq_ignore_ascii_case(domain) => Asked::Domain,
        Some(Err(_)) => Asked::Nobody,
    })
}

/// A query with one question and without answers: what its head promises is not believed before.
fn parse(query: &[u8]) -> Option<Packet<'_>> {
    let counts = query.get(4..HEAD)?;
    // One question; at most one more record, which says what the program can receive.
    let is_query = counts[..6] == [0, 1, 0, 0, 0, 0] && counts[6] == 0 && counts[7] <= 1;
    if !is_query || query.len() > LONGEST || !spells_its_name(&query[HEAD..]) {
        return None;
    }
    Packet::parse(query).ok().filter(|packet| !packet.has_flags(PacketFlag::RESPONSE))
}

/// Whether a question, and no pointer, has all of its name: there is nothing before it but the head, to which a pointer
/// would lead, and the answer would be longer than what was asked.
fn spells_its_name(mut question: &[u8]) -> bool {
    while let Some((&length, rest)) = question.split_first() {
        if length == 0 || length > LONGEST_LABEL {
            return length == 0;
        }
        question = rest.get(usize::from(length)..).unwrap_or_default();
    }
    false
}

/// Whether this is an answer to a query, whatever its number: it has the same question.
pub(super) fn is_answer(message: &[u8], query: &[u8]) -> bool {
    let question = |packet: &Packet<'_>| packet.questions.first().map(|it| format!("{it:?}"));
    let asked = parse(query).as_ref().and_then(question);
    let answer = Packet::parse(message).ok().filter(|it| it.has_flags(PacketFlag::RESPONSE));
    asked.is_some() && answer.as_ref().and_then(question) == asked
}

/// The address whose name is asked for, by a name below in-addr.arpa or ip6.arpa.
fn pointer(name: &str) -> Option<IpAddr> {
    let name = name.to_ascii_lowercase();
    if let Some(reversed) = name.strip_suffix(".in-addr.arpa") {
        let octets: Vec<u8> =
            reversed.split('.').rev().map(|octet| octet.parse().ok()).collect::<Option<_>>()?;
        return Some(Ipv4Addr::from(<[u8; 4]>::try_from(octets).ok()?).into());
    }
    let reversed = name.strip_suffix(".ip6.arpa")?;
    let digit =
        |text: &str| (text.len() == 1).then(|| u128::from_str_radix(text, 16).ok()).flatten();
    let digits: Vec<u128> = reversed.split('.').rev().map(digit).collect::<Option<_>>()?;
    let number = (digits.len() == 32).then(|| digits.iter().fold(0, |sum, digit| sum << 4 | digit));
    number.map(|number| Ipv6Addr::from(number).into())
}

/// Writes the answer to a query that was read.
pub(super) fn write(query: &[u8], answer: Answer<'_>) -> Option<Vec<u8>> {
    let asked = parse(query)?;
    let question = asked.questions.first()?;
    let mut reply = Packet::new_reply(asked.id());
    *reply.opcode_mut() = asked.opcode();
    reply.set_flags(PacketFlag::AUTHORITATIVE_ANSWER);
    if asked.has_flags(PacketFlag::RECURSION_DESIRED) {
        reply.set_flags(PacketFlag::RECURSION_DESIRED);
    }
    *reply.rcode_mut() = match answer {
        Answer::Addresses(..) | Answer::Pointer(_) | Answer::Nothing => RCODE::NoError,
        Answer::NoSuchName => RCODE::NameError,
        Answer::Failure(_) => RCODE::ServerFailure,
        Answer::Refused => RCODE::Refused,
        Answer::NotImplemented => RCODE::NotImplemented,
    };
    let data = match (answer, question.qtype) {
        (Answer::Addresses(v4, _), QTYPE::TYPE(TYPE::A)) => {
            Some(RData::A(A { address: v4.into() }))
        }
        (Answer::Addresses(_, v6), QTYPE::TYPE(TYPE::AAAA)) => {
            Some(RData::AAAA(AAAA { address: v6.into() }))
        }
        (Answer::Pointer(name), QTYPE::TYPE(TYPE::PTR)) => {
            Some(RData::PTR(PTR(Name::new(name).ok()?)))
        }
        _ => None,
    };
    let name = question.qname.clone();
    reply.answers.extend(data.map(|data| ResourceRecord::new(name, CLASS::IN, TTL, data)));
    reply.questions.push(question.clone());
    if let (Answer::Failure(why), Some(_)) = (answer, asked.opt()) {
        *reply.opt_mut() = Some(failure(why));
    }
    reply.build_bytes_vec_compressed().ok()
}

/// Reads any bytes as a query, and answers them in each way: an answer is one to that query, and hardly longer.
#[cfg(any(test, fuzzing))]
pub(crate) fn hostile(query: &[u8]) {
    let asked = read(query, "home.internal");
    let answers = [
        Answer::Addresses([10, 99, 0, 2].into(), "fd00::2".parse().unwrap_or(Ipv6Addr::LOCALHOST)),
        Answer::Pointer("nas.home.internal"),
        Answer::Nothing,
        Answer::NoSuchName,
        Answer::Failure("nobody is there"),
        Answer::Refused,
        Answer::NotImplemented,
    ];
    for answer in answers {
        let written = write(query, answer);
        assert_eq!(written.is_some(), asked.is_some(), "{answer:?}");
        let Some(written) = written else { continue };
        assert!(written.len() <= query.len() + 64, "{} for {}", written.len(), query.len());
        assert!(written[..2] == query[..2] && written[2] & 0x80 != 0, "another's answer");
        let reply = Packet::parse(&written).unwrap_or_else(|error| panic!("{error}"));
        let question = parse(query).and_then(|asked| asked.questions.first().cloned());
        assert_eq!(format!("{:?}", reply.questions.first()), format!("{:?}", question.as_ref()));
        let is_empty = !matches!(answer, Answer::Addresses(..) | Answer::Pointer(_));
        assert!(reply.answers.len() <= usize::from(!is_empty));
    }
}

/// Why there is no answer, as RFC 8914 has it: `dig` prints it.
fn failure(why: &str) -> OPT<'static> {
    let why = &why[..why.floor_char_boundary(LONGEST_REASON)];
    let data = [&OTHER.to_be_bytes(), why.as_bytes()].concat();
    let opt_codes = vec![OPTCode { code: EXTENDED_ERROR, data: data.into() }];
    OPT { opt_codes, udp_packet_size: LONGEST as u16, version: 0 }
}

/// Why there is no answer, if the answer says it.
pub(super) fn reason(answer: &Packet<'_>) -> Option<String> {
    let code = answer.opt()?.opt_codes.iter().find(|code| code.code == EXTENDED_ERROR)?;
    Some(String::from_utf8_lossy(code.data.get(2..)?).into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use simple_dns::Question;

    use super::*;

    const DOMAIN: &str = "home.internal";

    fn query(name: &str, kind: TYPE) -> Vec<u8> {
        let mut packet = Packet::new_query(77);
        let name = Name::new(name).unwrap();
        packet.questions.push(Question::new(name, kind.into(), CLASS::IN.into(), false));
        packet.build_bytes_vec().unwrap()
    }

    fn asked(name: &str, kind: TYPE) -> Option<Asked> {
        read(&query(name, kind), DOMAIN)
    }

    #[test]
    fn a_question_is_about_a_node_an_address_or_somebody_elses() {
        let nas: NodeName = "nas".parse().unwrap();
        assert_eq!(asked("NAS.home.internal", TYPE::A), Some(Asked::Node(nas.clone(), Wanted::V4)));
        let other = Some(Asked::Node(nas, Wanted::Other));
        assert_eq!(asked("nas.home.internal", TYPE::MX), other);
        assert_eq!(asked("a.nas.home.internal", TYPE::A), Some(Asked::Nobody));
        assert_eq!(asked("home.internal", TYPE::A), Some(Asked::Domain));
        assert_eq!(asked("example.org", TYPE::A), Some(Asked::Foreign));
        let v4 = Some(Asked::Pointer([10, 99, 0, 2].into()));
        assert_eq!(asked("2.0.99.10.in-addr.arpa", TYPE::PTR), v4);
        let v6 = format!("2.{}0.0.d.f.ip6.arpa", "0.".repeat(27));
        let address: IpAddr = "fd00::2".parse().unwrap();
        assert_eq!(asked(&v6, TYPE::PTR), Some(Asked::Pointer(address)));
        assert_eq!(asked("0.99.10.in-addr.arpa", TYPE::PTR), Some(Asked::Foreign));
    }

    #[test]
    fn an_answer_is_what_was_asked_for_and_nothing_else() {
        let addresses = Answer::Addresses([10, 99, 0, 2].into(), "fd00::2".parse().unwrap());
        let told = |kind, answer| {
            let written = write(&query("nas.home.internal", kind), answer).unwrap();
            let packet = Packet::parse(&written).unwrap();
            assert!(packet.id() == 77 && packet.questions.len() == 1 && written.len() <= LONGEST);
            (packet.rcode(), packet.answers.len())
        };
        assert_eq!(told(TYPE::A, addresses), (RCODE::NoError, 1));
        assert_eq!(told(TYPE::AAAA, addresses), (RCODE::NoError, 1));
        // There is such a name, and it has none of these.
        assert_eq!(told(TYPE::MX, addresses), (RCODE::NoError, 0));
        assert_eq!(told(TYPE::A, Answer::NoSuchName), (RCODE::NameError, 0));
        assert_eq!(told(TYPE::A, Answer::Refused), (RCODE::Refused, 0));
        let name = write(
            &query("2.0.99.10.in-addr.arpa", TYPE::PTR),
            Answer::Pointer("nas.home.internal"),
        );
        assert_eq!(Packet::parse(&name.unwrap()).unwrap().answers.len(), 1);
    }

    #[test]
    fn a_failure_says_why_to_who_can_hear_it() {
        let mut packet = Packet::new_query(77);
        let name = Name::new("nas.home.internal").unwrap();
        packet.questions.push(Question::new(name, TYPE::A.into(), CLASS::IN.into(), false));
        *packet.opt_mut() = Some(OPT { opt_codes: Vec::new(), udp_packet_size: 1_232, version: 0 });
        let with = packet.build_bytes_vec().unwrap();
        let why = "that node is not there";
        let told = |query: &[u8]| {
            let answer = write(query, Answer::Failure(why)).unwrap();
            let packet = Packet::parse(&answer).unwrap();
            assert_eq!(packet.rcode(), RCODE::ServerFailure);
            reason(&packet)
        };
        assert_eq!(told(&with).as_deref(), Some(why));
        assert_eq!(told(&query("nas.home.internal", TYPE::A)), None);
        let long = write(&with, Answer::Failure(&"\u{e9}".repeat(400))).unwrap();
        assert!(long.len() <= LONGEST);
    }

    #[test]
    fn a_reply_and_a_head_that_lies_get_no_answer() {
        let mut bytes = query("nas.home.internal", TYPE::A);
        for at in [4, 5, 6, 7, 8, 9, 10, 11] {
            let before = std::mem::replace(&mut bytes[at], 0xff);
            assert_eq!(read(&bytes, DOMAIN), None, "byte {at}");
            bytes[at] = before;
        }
        assert!(read(&bytes, DOMAIN).is_some());
        bytes[2] |= 0x80;
        assert_eq!(read(&bytes, DOMAIN), None);
    }

    proptest! {
        #[test]
        fn any_bytes_get_their_own_answer_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..600), head: bool) {
            let mut bytes = bytes;
            if head && bytes.len() >= HEAD {
                bytes[2] &= 0x7f;
                bytes[4..HEAD].copy_from_slice(&[0, 1, 0, 0, 0, 0, 0, 1]);
            }
            hostile(&bytes);
        }
    }

    #[test]
    fn the_fuzzers_corpus_does_no_harm() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/names");
        let files: Vec<_> = std::fs::read_dir(corpus).unwrap().collect();
        assert!(!files.is_empty());
        files.into_iter().for_each(|file| hostile(&std::fs::read(file.unwrap().path()).unwrap()));
    }
}
