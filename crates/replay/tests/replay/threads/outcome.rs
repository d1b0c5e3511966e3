//! Everything that a replay gives, as bytes.

use std::collections::BTreeMap;

use conntrack::Mode;
use dataplane::{Config, Start};
use replay::groups::GroupBy;
use replay::report::Style;
use replay::run::{self, List, Wanted};
use replay::walk::Setup;
use replay::{Alone, RulesFile, Selection};
use rules::save::LoadOptions;

use super::made::Made;

/// What to replay, and how.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) rules: String,
    pub(crate) versus: Option<String>,
    pub(crate) list: Option<(List, usize)>,
    pub(crate) groups: Vec<GroupBy>,
    pub(crate) mode: Mode,
    pub(crate) ct_max: usize,
    /// The rules are walked as they were read.
    pub(crate) reference: bool,
    pub(crate) selection: Selection,
    /// A bans file that changes nothing in time.
    pub(crate) bans: Option<String>,
    pub(crate) outputs: Outputs,
}

/// What is written besides the report.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outputs {
    pub(crate) verdicts: bool,
    pub(crate) page: bool,
    pub(crate) packets: bool,
    pub(crate) split: bool,
    pub(crate) annotate: bool,
}

impl Outputs {
    pub(crate) const ALL: Self =
        Self { verdicts: true, page: true, packets: true, split: true, annotate: true };
}

impl Default for Asked {
    fn default() -> Self {
        Self {
            rules: String::new(),
            versus: None,
            list: None,
            groups: Vec::new(),
            mode: Mode::Midstream,
            ct_max: 262_144,
            reference: false,
            selection: Selection::default(),
            bans: None,
            outputs: Outputs::ALL,
        }
    }
}

/// What came of it.
pub(crate) struct Outcome {
    /// Every file and the reports, by name.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    pub(crate) one_worker: Option<Alone>,
}

pub(crate) fn load(name: &str, text: &str) -> RulesFile {
    RulesFile::from_text(name, text.to_owned(), &LoadOptions::default()).unwrap()
}

/// Replays with this number of threads.
pub(crate) fn outcome(asked: &Asked, made: &Made, threads: usize) -> Outcome {
    let rules = [load("rules.v4", &asked.rules)];
    let bans = asked.bans.as_ref().map(|text| {
        let path = made.dir.path().join("bans");
        std::fs::write(&path, text).unwrap();
        replay::bans_file::open(path.to_str().unwrap()).unwrap()
    });
    let Outputs { verdicts: says, page, packets: lists, split: splits, annotate } = asked.outputs;
    let config = Config {
        reference: asked.reference,
        ct: conntrack::Config { mode: asked.mode, max: asked.ct_max, ..Default::default() },
        ..Config::default()
    };
    let setup = Setup { config, start: Start { bans, ..Start::default() } };
    let [mut verdicts, mut packets, mut annotated] = [const { Vec::new() }; 3];
    let split = made.dir.path().join(format!("split-{}-{threads}", asked.reference));
    let mut wanted = Wanted {
        list: asked.list.map(|(list, limit)| (list.into(), limit)),
        groups: asked.groups.clone(),
        verdicts: if says { Some(&mut verdicts) } else { None },
        page,
        selection: Selection { count: asked.selection.count, ..Selection::default() },
        versus: asked.versus.as_ref().map(|text| vec![load("new.v4", text)]),
        packets: if lists { Some(&mut packets) } else { None },
        split: splits.then(|| split.clone()),
        annotate: if annotate { Some(&mut annotated) } else { None },
        threads,
        ..Wanted::default()
    };
    let mut report = run::replay(&rules, &made.captures, &setup, &mut wanted).unwrap();
    drop(wanted);
    report.elapsed_s = 1.0;
    let mut json = Vec::new();
    report.write_json(&mut json).unwrap();
    let mut files = BTreeMap::from([
        ("json".to_owned(), json),
        ("text".to_owned(), report.text(Style::default()).into_bytes()),
        ("page".to_owned(), report.html("tamis replay").into_bytes()),
        ("counters".to_owned(), report.saved_counters(0).into_bytes()),
        ("verdicts".to_owned(), verdicts),
        ("packets".to_owned(), packets),
        ("annotated".to_owned(), annotated),
    ]);
    for entry in std::fs::read_dir(&split).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = format!("split/{}", path.file_name().unwrap().display());
        files.insert(name, std::fs::read(path).unwrap());
    }
    Outcome { files, one_worker: report.one_worker }
}
