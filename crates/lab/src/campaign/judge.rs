//! What has to hold of a case, however it was drawn.
//!
//! A replay is taken or refused in one line. One that is taken is JSON whose counters add up; each packet has one verdict in
//! `--verdicts`, and as many have each as the report says. Two workers, and three, say the same byte for byte; so do rules
//! that are compared with themselves; so does the same capture in either format. `why` says of a packet what the replay did.

use std::collections::BTreeMap;
use std::io::Cursor;

use pktio::pcap_file::{ClassicWriter, NgWriter, Precision};
use pktio::{Burst, CaptureReader, Interface, LinkType, Port};
use serde_json::Value;

use super::draw::{CAPTURE, Case, RULES};
use super::run::Runs;

/// Verdicts, in the words of `--verdicts`, with the exit code of `why`.
const WORDS: [(&str, i32); 4] = [("accept", 0), ("drop", 1), ("reject", 1), ("unknown", 4)];

/// What came of a case that went well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Played {
    /// It was replayed: so many packets.
    Replayed(u64),
    /// It was refused, in one line.
    Refused,
}

pub(super) fn judge(case: &Case, runs: &mut Runs<'_>) -> Result<Played, String> {
    let Some(alone) = replay(case, runs, CAPTURE, &["-j", "1"])? else {
        return Ok(Played::Refused);
    };
    let packets = adds_up(&alone)?;
    for jobs in ["2", "3"] {
        let several = replay(case, runs, CAPTURE, &["-j", jobs])?;
        if several.as_ref() != Some(&alone) {
            return Err(format!("-j {jobs} says something else: {}", differs(&alone, several)));
        }
    }
    why(case, runs, &alone)?;
    unchanged(case, runs, &alone)?;
    formats(case, runs)?;
    Ok(Played::Replayed(packets))
}

/// What a replay said: its report without the time that it took, and the files that it wrote, by name.
#[derive(Debug, PartialEq)]
struct Said {
    report: Value,
    verdicts: String,
    packets: String,
    counters: String,
}

fn replay(
    case: &Case,
    runs: &mut Runs<'_>,
    capture: &str,
    more: &[&str],
) -> Result<Option<Said>, String> {
    let mut args = vec!["replay", RULES, capture, "--json", "--verdicts", "verdicts"];
    args.extend(["--packets", "packets", "--save-counters", "counters"]);
    args.extend(more);
    args.extend(case.options.iter().map(String::as_str));
    let ran = runs.run(&args, &[0, 2])?;
    if ran.code == 2 {
        return Ok(None);
    }
    let mut report: Value = serde_json::from_str(&ran.out).map_err(|error| error.to_string())?;
    for timed in ["elapsed_s", "packets_per_s"] {
        report.as_object_mut().ok_or("no object")?.remove(timed);
    }
    let [verdicts, packets, counters] = ["verdicts", "packets", "counters"].map(|it| runs.read(it));
    Ok(Some(Said { report, verdicts: verdicts?, packets: packets?, counters: counters? }))
}

/// Packets of a replay, if all that is counted adds up.
fn adds_up(said: &Said) -> Result<u64, String> {
    let report = &said.report;
    let packets = report["packets"].as_u64().ok_or("no packets")?;
    let verdicts = report["verdicts"].as_object().ok_or("no verdicts")?;
    let counted: BTreeMap<&str, u64> = verdicts
        .iter()
        .filter_map(|(word, count)| Some((word.as_str(), count["packets"].as_u64()?)))
        .collect();
    let mut listed = BTreeMap::new();
    said.verdicts.lines().for_each(|word| *listed.entry(word).or_insert(0) += 1);
    let reasons = report["drop_reasons"].as_object().ok_or("no reasons")?;
    let dropped: u64 = reasons.values().filter_map(Value::as_u64).sum();
    let is_whole = counted.values().sum::<u64>() == packets
        && said.packets.lines().count() as u64 == packets
        && counted.iter().all(|(word, count)| listed.remove(word).unwrap_or(0) == *count)
        && listed.is_empty()
        && counted.get("drop").copied().unwrap_or(0) == dropped;
    if !is_whole {
        return Err(format!("{packets} packets, {counted:?}, {listed:?}, {reasons:?}"));
    }
    for line in said.packets.lines() {
        serde_json::from_str::<Value>(line).map_err(|error| format!("{error}: {line}"))?;
    }
    Ok(packets)
}

/// Where two say something else.
fn differs(one: &Said, other: Option<Said>) -> String {
    let Some(other) = other else { return "a refusal".to_owned() };
    let texts = |said: &Said| {
        [
            said.report.to_string(),
            said.verdicts.clone(),
            said.packets.clone(),
            said.counters.clone(),
        ]
    };
    let names = ["report", "verdicts", "packets", "counters"];
    let pairs = texts(one).into_iter().zip(texts(&other)).zip(names);
    let found = pairs.filter(|((one, other), _)| one != other).map(|(_, name)| name);
    found.collect::<Vec<_>>().join(", ")
}

/// One packet's story ends as its replay did.
fn why(case: &Case, runs: &mut Runs<'_>, said: &Said) -> Result<(), String> {
    // In order of time, which need not be that of their numbers.
    let lines = said.packets.lines().count().max(1);
    let Some(line) = said.packets.lines().nth(case.turn % lines) else { return Ok(()) };
    let packet: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let (number, verdict) = (packet["frame"].to_string(), packet["verdict"].as_str());
    let mut args = vec!["why", RULES, CAPTURE, "--packet", &number, "--json"];
    args.extend(case.options.iter().map(String::as_str));
    let ran = runs.run(&args, &[0, 1, 2, 4])?;
    let expected = WORDS.iter().find(|(word, _)| Some(*word) == verdict).map(|(_, code)| *code);
    if expected.is_some_and(|code| code != ran.code) {
        return Err(format!("why {number} exits with {}, and it is {verdict:?}", ran.code));
    }
    if ran.code != 2 {
        serde_json::from_str::<Value>(&ran.out).map_err(|error| format!("why: {error}"))?;
    }
    Ok(())
}

/// No packet changes its verdict under the same rules.
fn unchanged(case: &Case, runs: &mut Runs<'_>, said: &Said) -> Result<(), String> {
    let mut args = vec!["replay", RULES, CAPTURE, "--json", "--vs", RULES];
    let semantics = case.options.iter().skip_while(|option| *option != "--semantics").nth(1);
    args.extend(semantics.into_iter().flat_map(|which| ["--vs-semantics", which]));
    args.extend(case.options.iter().map(String::as_str));
    let ran = runs.run(&args, &[0, 2])?;
    if ran.code == 2 {
        return Err(format!("--vs is refused: {}", ran.err));
    }
    let report: Value = serde_json::from_str(&ran.out).map_err(|error| error.to_string())?;
    let changes = report["changes"]["packets"].as_u64();
    // Where rules are compared, that the capture shows a packet leaving does not count for either.
    let is_alike = report["verdicts"] == said.report["verdicts"];
    let is_same = is_alike || case.options.iter().all(|option| option != "--no-pair");
    if changes != Some(0) || !is_same {
        return Err(format!("{changes:?} changes under the same rules"));
    }
    Ok(())
}

/// The same frames in the classic format and in pcapng, where both can hold them.
fn formats(case: &Case, runs: &mut Runs<'_>) -> Result<(), String> {
    let Some([classic, ng]) = both(&case.capture) else { return Ok(()) };
    runs.write("classic.pcap", &classic)?;
    runs.write("ng.pcapng", &ng)?;
    let one = replay(case, runs, "classic.pcap", &[])?;
    let other = replay(case, runs, "ng.pcapng", &[])?;
    let [one, other] =
        [one, other].map(|said| said.map(|it| (it.verdicts, it.packets, it.counters)));
    if one != other {
        return Err("the same frames in both formats have other verdicts".to_owned());
    }
    Ok(())
}

/// Frames of one link type, all with a time, written in both formats.
fn both(capture: &[u8]) -> Option<[Vec<u8>; 2]> {
    let mut reader = CaptureReader::new(CAPTURE, Cursor::new(capture.to_vec())).ok()?;
    let mut burst = Burst::new();
    let mut classic: Option<(LinkType, ClassicWriter<Vec<u8>>)> = None;
    let mut ng = NgWriter::new(Vec::new()).ok()?;
    while let Ok(1..) = reader.rx_burst(&mut burst) {
        for frame in burst.iter() {
            let link_type = frame.meta.link_type;
            if classic.is_none() {
                let writer = ClassicWriter::new(Vec::new(), link_type, Precision::Nanos).ok()?;
                classic = Some((link_type, writer));
                ng.add_interface(&Interface { name: None, link_type, snaplen: 0 }).ok()?;
            }
            let (of, writer) = classic.as_mut()?;
            let is_plain = *of == link_type
                && frame.meta.timestamp.is_some_and(|at| {
                    (0..i64::from(u32::MAX) * 1_000_000_000).contains(&at.as_nanos())
                });
            if !is_plain || frame.meta.direction != pktio::Direction::Unknown {
                return None;
            }
            writer.write(frame).ok()?;
            ng.write(0, frame, None).ok()?;
        }
    }
    Some([classic?.1.finish().ok()?, ng.finish().ok()?])
}
