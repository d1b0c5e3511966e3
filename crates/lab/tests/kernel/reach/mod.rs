//! `reach` against the kernel: what it says with certainty of hosts of `fixtures/reach` holds for packets that are sent
//! through them, and nothing arrives that it does not tell of. `TAMIS_REACH_QUESTIONS` says how many questions are asked (5,000
//! are the whole campaign), `TAMIS_REACH_SEED` which. Needs root, the legacy tools and nft; without them it says so and
//! passes.

mod host;
mod packets;
mod questions;

use std::io;

use ::host::{Incoming, Routed};
use fastrand::Rng;
use lab::oracle::load::lacking;
use lab::oracle::netns::in_fresh;
use lint::{Judged, Question, Reach, Reached, Reaching, States, reach};
use rules::model::{Family, Hook};

use self::host::{HOSTS, Running};
use self::packets::{End, Sent};
use self::questions::Pool;
use crate::setting;

/// Packets of each region, and packets that a question is about.
const OF_REGION: usize = 2;
const OF_QUESTION: usize = 12;

#[test]
fn the_kernel_contradicts_nothing() {
    if let Some(reason) = lacking() {
        eprintln!("SKIPPED: {reason}");
        return;
    }
    if std::process::Command::new("nft").arg("--version").output().is_err() {
        eprintln!("SKIPPED: nft is not installed");
        return;
    }
    let questions = setting("TAMIS_REACH_QUESTIONS", 120);
    let seed = setting("TAMIS_REACH_SEED", 1);
    let mut number = 0;
    let mut told = Vec::new();
    for fixture in &HOSTS {
        for family in [Family::Ipv4, Family::Ipv6] {
            let asked = questions / 6 + u64::from(number < questions % 6);
            let all = in_fresh(|| {
                let mut host = Running::start(fixture, family)?;
                let mut rng = Rng::with_seed(seed * 6 + number);
                let mut trial = Trial { tally: Tally::default(), contradictions: Vec::new() };
                for _ in 0..asked {
                    trial.ask(&mut host, family, &mut rng)?;
                }
                Ok(trial)
            });
            let trial = all.unwrap_or_else(|error| panic!("{}: {error}", fixture.name));
            eprintln!("{} {family:?}: {asked} questions, {:?}", fixture.name, trial.tally);
            let named = |story| format!("{} {family:?}: {story}", fixture.name);
            told.extend(trial.contradictions.into_iter().map(named));
            number += 1;
        }
    }
    let shown = told.iter().take(60).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(told.is_empty(), "{} contradictions, such as\n{shown}", told.len());
}

/// What was asked and sent.
#[derive(Debug, Default)]
struct Tally {
    reached: u64,
    perhaps: u64,
    nothing: u64,
    regions: u64,
    sent: u64,
    arrived: u64,
    /// Packets of regions that are certain.
    held: u64,
}

struct Trial {
    tally: Tally,
    contradictions: Vec<String>,
}

/// What was said, and of what.
struct Answer<'a> {
    question: &'a Question,
    found: &'a Reach,
    words: String,
}

impl Trial {
    fn ask(&mut self, host: &mut Running, family: Family, rng: &mut Rng) -> io::Result<()> {
        let text = host.file.text.clone();
        let pool = Pool::of(&host.host, &text, family);
        let inputs = host.inputs();
        let question = pool.question(&inputs, rng).of_host(&host.host);
        let found = reach(&host.file.ruleset, &question, &mut |_, packet| judged(host, packet));
        match found.reached() {
            Reached::Yes => self.tally.reached += 1,
            Reached::Perhaps => self.tally.perhaps += 1,
            Reached::No => self.tally.nothing += 1,
        }
        let to = question.to.map(|to| format!("--to {to} ")).unwrap_or_default();
        let from = question.from.map(|from| format!("--from {from} ")).unwrap_or_default();
        let input = question.input.as_ref().map(|name| format!("--in {name}")).unwrap_or_default();
        let words = format!("{to}{from}{input}");
        let answer = Answer { question: &question, found: &found, words };
        let shown = found.closed.iter().filter(|it| it.states != States::Established);
        let shown = shown.filter_map(|it| it.probe.as_ref());
        let opening = || found.regions.iter().filter(|it| it.states != States::Established);
        // What depends on packets that came before is an example where none did.
        let certain = opening().filter(|it| it.is_certain);
        for (words, judged) in shown.chain(certain.filter_map(|it| it.witness.as_ref())) {
            self.example(host, &answer, words, judged)?;
        }
        for region in opening().filter(|it| it.way != Hook::Output) {
            self.tally.regions += 1;
            for _ in 0..OF_REGION {
                let packet = pool.packet(&question, &inputs, rng);
                let packet = packet.within(&region.piece, &inputs, rng);
                self.send(host, &answer, &packet)?;
            }
        }
        for _ in 0..OF_QUESTION {
            let packet = pool.packet(&question, &inputs, rng);
            self.send(host, &answer, &packet)?;
        }
        Ok(())
    }

    /// Sends an example, which fares as it says.
    fn example(
        &mut self,
        host: &mut Running,
        answer: &Answer<'_>,
        words: &str,
        judged: &Judged,
    ) -> io::Result<()> {
        let Some(packet) = Sent::of_words(words) else { return Ok(()) };
        let said = match judged.verdict.as_str() {
            "accept" => true,
            "drop" | "reject" => false,
            _ => return Ok(()),
        };
        let end = sent(host, &packet, said)?;
        if said != end.is_some() {
            self.contradict(answer, &packet, end, &format!("example {words}: {judged:?}"));
        }
        self.compare(host, answer, &packet, end);
        Ok(())
    }

    fn send(&mut self, host: &mut Running, answer: &Answer<'_>, packet: &Sent) -> io::Result<()> {
        let question = answer.question;
        let certain = answer.found.regions.iter().filter(|it| it.is_certain);
        let is_told = certain.into_iter().any(|it| holds(host, question, it, packet));
        let end = sent(host, packet, is_told)?;
        self.compare(host, answer, packet, end);
        Ok(())
    }

    /// Holds what was said of a packet to how it fared.
    fn compare(&mut self, host: &Running, answer: &Answer<'_>, packet: &Sent, end: Option<End>) {
        self.tally.sent += 1;
        self.tally.arrived += u64::from(end.is_some());
        let Answer { question, found, .. } = answer;
        let is_asked = question.from.is_none_or(|from| from.holds(packet.source))
            && question.input.as_ref().is_none_or(|input| *input == packet.input);
        if !is_asked {
            return;
        }
        let has = |region: &&Reaching| {
            region.states != States::Established && holds(host, question, region, packet)
        };
        let regions: Vec<&Reaching> = found.regions.iter().filter(has).collect();
        let is_there = |end: &End| {
            is_at(question, packet.destination, packet.protocol, packet.ports[1])
                || is_at(question, end.destination, end.protocol, end.ports[1])
        };
        if let Some(end) = end.filter(is_there) {
            let is_whole = !found.more && found.too_large.is_empty();
            if found.reached() == Reached::No && found.too_large.is_empty() {
                self.contradict(answer, packet, Some(end), "nothing reaches");
            } else if is_whole && regions.is_empty() {
                self.contradict(answer, packet, Some(end), "no region has it");
            }
        }
        for region in regions.into_iter().filter(|it| it.is_certain) {
            self.tally.held += 1;
            // What routes refuse does not come in, and is left out.
            let goes = |end: &End| end.to_host == (region.way == Hook::Input);
            let is_left_out = way_of(host, packet).is_err() && !end.as_ref().is_some_and(goes);
            if is_left_out && (region.translated.is_none() || end.is_none()) {
                continue;
            }
            if let Some(what) = differs(region, packet, end) {
                self.contradict(answer, packet, end, &format!("{what}: {}", told(region)));
            }
        }
    }

    fn contradict(&mut self, answer: &Answer<'_>, packet: &Sent, end: Option<End>, what: &str) {
        let words = &answer.words;
        self.contradictions.push(format!("reach {words}\n{packet:?}\nkernel: {end:?}\n{what}"));
    }
}

/// How a packet fared. One that should arrive and does not is sent again: on a busy machine the kernel puts off what came
/// in, and a packet is late.
fn sent(host: &mut Running, packet: &Sent, should_arrive: bool) -> io::Result<Option<End>> {
    match host.send(packet)? {
        None if should_arrive => {
            std::thread::sleep(std::time::Duration::from_millis(50));
            host.send(packet)
        }
        end => Ok(end),
    }
}

/// A region in a few lines.
fn told(region: &Reaching) -> String {
    let Reaching { way, piece, by, translated, leaves_as, witness, .. } = region;
    format!("{way:?} {piece}\n  {by:?}\n  {translated:?}\n  {leaves_as:?}\n  {witness:?}")
}

fn judged(host: &Running, packet: &str) -> Judged {
    let single = host.singles.ask(packet).unwrap_or_else(|error| panic!("{packet}: {error}"));
    Judged {
        verdict: single.verdict.to_owned(),
        by: single.by,
        place: single.place.map(|place| place.to_string()),
        because: single.because,
        differs: false,
    }
}

/// Whether something arrived where it was asked for.
fn is_at(question: &Question, destination: std::net::IpAddr, protocol: u8, port: u16) -> bool {
    question.to.is_none_or(|to| {
        to.network.holds(destination)
            && to.protocol.is_none_or(|wanted| wanted == protocol)
            && to.ports.is_none_or(|[low, high]| (low..=high).contains(&port))
    })
}

/// Whether a region has a packet that comes in: one that is not sent on is told of by its own destination.
fn holds(host: &Running, question: &Question, region: &Reaching, packet: &Sent) -> bool {
    let is_that_way = region.translated.is_some()
        || way_of(host, packet).ok().flatten().is_none_or(|way| way == region.way)
            && is_at(question, packet.destination, packet.protocol, packet.ports[1]);
    is_that_way && packet.is_of(&region.piece)
}

/// Where a packet goes as it comes, if that is known.
fn way_of(host: &Running, packet: &Sent) -> Result<Option<Hook>, ()> {
    let Sent { source, destination, input, .. } = packet;
    let incoming = Incoming {
        tos: Some(packet.tos),
        protocol: Some(packet.protocol),
        ports: Some(packet.ports),
        ..Incoming::new(*source, *destination, Some(input))
    };
    if is_refused(*source, *destination) {
        return Err(());
    }
    match host.host.route_in(&incoming) {
        Routed::Input(_) => Ok(Some(Hook::Input)),
        Routed::Forward { .. } => Ok(Some(Hook::Forward)),
        Routed::Refused(_) => Err(()),
        Routed::Unknown(_) => Ok(None),
    }
}

/// Whether the stack refuses addresses before it routes them.
fn is_refused(source: std::net::IpAddr, destination: std::net::IpAddr) -> bool {
    let scope = |v6: std::net::Ipv6Addr| v6.is_multicast().then(|| v6.octets()[1] & 15);
    match (source, destination) {
        (std::net::IpAddr::V6(source), std::net::IpAddr::V6(destination)) => {
            source.is_loopback()
                || source.is_multicast()
                || destination.is_loopback()
                || matches!(scope(destination), Some(0 | 1))
        }
        _ => false,
    }
}

/// What a region says of a packet that did not come to pass.
fn differs(region: &Reaching, packet: &Sent, end: Option<End>) -> Option<&'static str> {
    let Some(end) = end else { return Some("did not arrive") };
    if end.to_host != (region.way == Hook::Input) {
        return Some("came another way");
    }
    let to = match &region.translated {
        Some(translated) => translated.to.clone(),
        None => packet.destination.to_string(),
    };
    let port = end.ports[1];
    let address = match end.destination {
        std::net::IpAddr::V6(v6) => format!("[{v6}]"),
        v4 => v4.to_string(),
    };
    let host = if end.to_host { "this host" } else { "" };
    let arrived = [
        end.destination.to_string(),
        format!("{address}:{port}"),
        format!("{host}:{port}"),
        host.to_owned(),
    ];
    if !arrived.contains(&to) {
        return Some("arrived elsewhere");
    }
    let has_other = end.source != packet.source;
    (has_other == region.leaves_as.is_empty()).then_some("left with another source")
}
