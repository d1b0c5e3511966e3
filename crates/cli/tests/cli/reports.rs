//! Forty public reports (docs/conformance-reports.md) as small cases, held to what the kernel did with each packet: the
//! verdict and what decided it, where the packet left with which addresses, and the rules that counted it.
//!
//! `known.txt` names the folders where tamis says `unknown`, or something else than the kernel, with the reason; what it
//! names has to be so.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::ran::{Ran, tamis};

/// How an answer stands to the kernel's; the worst of a folder counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Right,
    Unknown,
    Wrong,
}

/// What the kernel did with a packet.
#[derive(Debug, Default, Clone)]
struct Answer {
    packet: String,
    verdict: String,
    by: Option<String>,
    left: Option<(String, String)>,
    hits: Option<BTreeSet<String>>,
}

/// The conversations of an `answers.txt`.
fn conversations(text: &str) -> Vec<Vec<Answer>> {
    let mut all = vec![Vec::<Answer>::new()];
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if word == "again" {
            all.push(Vec::new());
            continue;
        }
        let current = all.last_mut().unwrap();
        if word == "packet" {
            current.push(Answer { packet: rest.to_owned(), ..Answer::default() });
            continue;
        }
        let answer = current.last_mut().unwrap();
        match word {
            "left" => {
                let (out, flow) = rest.split_once(' ').unwrap();
                answer.left = Some((out.to_owned(), flow.to_owned()));
            }
            // Of two backends, the hits of the file that is read.
            "hits" => {
                let of_file =
                    rest.split(' ').filter(|at| !at.is_empty() && !at.starts_with("legacy:"));
                answer.hits =
                    Some(of_file.map(|at| at.trim_start_matches("nft:").to_owned()).collect());
            }
            verdict => {
                answer.verdict = verdict.to_owned();
                answer.by = rest.strip_prefix("by ").map(str::to_owned);
            }
        }
    }
    all
}

/// A folder of a report.
struct Report {
    dir: PathBuf,
    /// The bridge of each port.
    masters: BTreeMap<String, String>,
}

impl Report {
    fn at(dir: PathBuf) -> Self {
        let links = fs::read_to_string(dir.join("host/links.txt")).unwrap();
        let masters = links.lines().filter_map(|line| {
            let name = line.split(": ").nth(1)?.split('@').next()?;
            let bridge = line.split(" master ").nth(1)?.split(' ').next()?;
            Some((name.to_owned(), bridge.to_owned()))
        });
        Self { masters: masters.collect(), dir }
    }

    fn file(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    /// What `tamis why` says of the last of these packets; `number` is its place in the folder's capture.
    fn why(&self, packets: &[Answer], number: usize) -> Ran {
        let (host, capture, number) =
            (self.file("host"), self.file("capture.pcap"), number.to_string());
        let mut args = vec!["why", &host];
        if Path::new(&capture).exists() {
            args.extend([&*capture, "--packet", &number]);
        } else {
            args.extend(packets.iter().flat_map(|answer| ["--packet", &answer.packet]));
        }
        args.push("--json");
        tamis(&args)
    }

    fn same_interface(&self, said: &str, left: &str) -> bool {
        said == left || self.masters.get(left).is_some_and(|bridge| bridge == said)
    }

    /// How what is said of a packet stands to the kernel's answer, and in which way it differs.
    fn judge(&self, answer: &Answer, said: &Ran) -> (Standing, String) {
        let wrong = |what: String| (Standing::Wrong, what);
        let Ok(why) = serde_json::from_str::<Value>(&said.out) else {
            return wrong(said.err.lines().next().unwrap_or("no answer").to_owned());
        };
        let by = why["by"].as_str().unwrap_or("");
        match (&*answer.verdict, why["verdict"].as_str().unwrap()) {
            (_, "unknown") => {
                let causes = why["unknown_because"].as_array().unwrap();
                let causes = causes.iter().filter_map(|cause| cause["what"].as_str());
                return (Standing::Unknown, causes.collect::<Vec<_>>().join(", "));
            }
            (kernel, said) if kernel != said => {
                return wrong(format!("{said} by {by}, not {kernel}"));
            }
            _ => {}
        }
        if let Some(rule) = answer.by.as_ref().filter(|rule| *rule != by) {
            return wrong(format!("{} by {by}, not {rule}", answer.verdict));
        }
        let steps = why["steps"].as_array().unwrap();
        if let Some((out, flow)) = &answer.left {
            let way = steps.iter().rev().find(|step| step["step"] == "path").unwrap();
            let said = way["out"].as_str().unwrap();
            if !self.same_interface(said, out) {
                return wrong(format!("leaves by {said}, not {out}"));
            }
            let said = translated(&answer.packet, steps);
            if said != *flow {
                return wrong(format!("leaves as {said}, not {flow}"));
            }
        }
        let said = hits(steps);
        match answer.hits.as_ref().filter(|hits| **hits != said) {
            Some(hits) => {
                let (more, less): (Vec<_>, Vec<_>) =
                    (said.difference(hits).collect(), hits.difference(&said).collect());
                wrong(format!(
                    "hits {more:?} which the kernel does not, not {less:?} which it does"
                ))
            }
            None => (Standing::Right, String::new()),
        }
    }
}

/// The rules that a packet matches for certain, as `table/chain/number`.
fn hits(steps: &[Value]) -> BTreeSet<String> {
    // What rules of nft counted was not recorded: their tables' names begin with a family.
    let is_recorded = |step: &&Value| !step["table"].as_str().unwrap().contains(' ');
    let hit = |step: &&Value| step["matches"] == "yes" && step["certain"] == true;
    let hit = |step: &&Value| hit(step) && is_recorded(step);
    let place = |step: &Value| {
        let text = |key: &str| step[key].as_str().unwrap().to_owned();
        format!("{}/{}/{}", text("table"), text("chain"), step["number"])
    };
    steps.iter().filter(hit).map(place).collect()
}

/// The addresses that a packet has after every reported translation.
fn translated(packet: &str, steps: &[Value]) -> String {
    let words: Vec<&str> = packet.split(' ').collect();
    let at = words.iter().position(|word| *word == ">").unwrap();
    let (mut source, mut destination) = (words[at - 1].to_owned(), words[at + 1].to_owned());
    for step in steps.iter().filter(|step| step["step"] == "nat") {
        for part in step["what"].as_str().unwrap().split(", ") {
            match part.split_once(" now ") {
                Some(("src", now)) => source = now.to_owned(),
                Some(("dst", now)) => destination = now.to_owned(),
                _ => {}
            }
        }
    }
    format!("{source} > {destination}")
}

/// How a folder stands to the kernel: the worst of its packets, and what was reported of it.
fn standing(dir: PathBuf) -> (Standing, String) {
    let answers = fs::read_to_string(dir.join("answers.txt")).unwrap();
    let report = Report::at(dir);
    let (mut worst, mut number) = ((Standing::Right, String::new()), 0);
    for conversation in conversations(&answers) {
        for last in 1..=conversation.len() {
            number += 1;
            let answer = &conversation[last - 1];
            let (standing, what) = report.judge(answer, &report.why(&conversation[..last], number));
            if standing > worst.0 {
                worst = (standing, format!("{}: {what}", answer.packet));
            }
        }
    }
    worst
}

/// The folders that `known.txt` names.
fn known(text: &str) -> BTreeMap<String, Standing> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let entry = |line: &str| {
        let mut words = line.split_whitespace();
        let folder = words.next().unwrap().to_owned();
        let standing = match words.next() {
            Some("unknown") => Standing::Unknown,
            Some("wrong") => Standing::Wrong,
            found => panic!("known.txt: expected unknown or wrong for {folder}, found {found:?}"),
        };
        assert!(words.next().is_some(), "known.txt: expected a reason for {folder}");
        (folder, standing)
    };
    lines.map(entry).collect()
}

#[test]
fn public_reports_are_answered_as_by_the_kernel() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/fixtures/reports");
    let known = known(&fs::read_to_string(root.join("known.txt")).unwrap());
    let entries = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path());
    let folders: BTreeSet<_> = entries.filter(|path| path.is_dir()).collect();
    assert_eq!(folders.len(), 40);
    let (mut count, mut differs) = ([0; 3], String::new());
    for dir in folders {
        let name = dir.file_name().unwrap().to_string_lossy().into_owned();
        let (standing, what) = standing(dir);
        count[standing as usize] += 1;
        let expected = known.get(&name).copied().unwrap_or(Standing::Right);
        if standing != expected {
            differs += &format!("\n{name}: {standing:?}, not {expected:?} as in known.txt; {what}");
        }
    }
    let [right, unknown, wrong] = count;
    let counts = format!("{right} as the kernel, {unknown} unknown, {wrong} wrong");
    assert!(differs.is_empty(), "{counts}{differs}");
    println!("{counts}");
}
