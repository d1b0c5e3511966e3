//! Rulesets from the wild: no finding that a walk contradicts, and every dead rule stays dead under many packets.

use std::path::{Path, PathBuf};

use lint::{Code, Preferred, Remembering, Sent, Space, flow, lint, walked_after};
use rules::eval::Memories;
use rules::model::{Hook, Ruleset};
use rules::save::{LoadOptions, load};

/// The rulesets that are there, by name.
pub(crate) fn rulesets() -> Vec<(String, Ruleset)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/rulesets");
    let Ok(files) = folder.read_dir() else {
        println!("SKIPPED: no {}", folder.display());
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = files.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "save"));
    paths.sort();
    let of = |path: &PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).expect("a readable file");
        match load(&text, &LoadOptions::default()) {
            Ok(loaded) => Some((name, loaded.ruleset)),
            // A shell transcript, and an option that no iptables has.
            Err(_)
                if name.starts_with("openwrt-AA")
                    || name.starts_with("isabelle-parser-test-v4") =>
            {
                None
            }
            Err(error) => panic!("{name}: {error}"),
        }
    };
    paths.iter().filter_map(of).collect()
}

/// No finding is contradicted, every table is proven, and rules that are dead by lint stay so under packets drawn from
/// what every rule of the file matches.
#[test]
fn dead_rules_stay_dead_under_packets_aimed_at_every_rule() {
    let each: u64 = if std::env::var_os("TAMIS_FULL").is_some() { 200 } else { 2 };
    for (name, ruleset) in rulesets() {
        let report = lint(&ruleset, None);
        assert_eq!((report.contradicted, &*report.unproven), (0, &[][..]), "{name}");
        let dead: Vec<u32> = report
            .findings
            .iter()
            .filter(|it| matches!(it.code, Code::Shadowed | Code::Unreachable | Code::NeverMatches))
            .map(|it| it.line)
            .collect();
        let mut memories = Memories::of(&ruleset);
        for table in 0..ruleset.tables.len() {
            let mut space = Space::of(&[&ruleset]);
            for hook in Hook::ALL {
                let sent =
                    Sent { remembering: Remembering::Apart(""), altered: lint::Altered::GoesOn };
                let Some(flow) = flow(&mut space, &ruleset, table, hook, sent).unwrap() else {
                    continue;
                };
                for (number, visit) in flow.visits.iter().enumerate().take(2_000) {
                    let aim = space.diagrams.and(visit.matches, flow.all).unwrap();
                    for seed in 0..each {
                        let preferred =
                            Preferred::drawn(ruleset.family, seed + number as u64 * each);
                        let Some(sample) = space.sample(aim, &preferred) else { break };
                        let place = (table, hook);
                        let walked = walked_after(&mut memories, &ruleset, place, &sample.values);
                        let Some(walked) = walked else {
                            continue;
                        };
                        for hit in walked.hits {
                            let chain =
                                &ruleset.tables[hit.table as usize].chains[hit.chain as usize];
                            let line = chain.rules[hit.rule as usize].line;
                            assert!(!dead.contains(&line), "{name}:{line} is hit by {sample:?}");
                        }
                    }
                }
            }
        }
    }
}
