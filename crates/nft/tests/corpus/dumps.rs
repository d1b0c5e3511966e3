//! Dumps of nftables' own tests: text and JSON of one ruleset give one model, and both print as they were.

use nft::json::Json;
use nft::model::{KeyType, Position, Ruleset};
use nft::text::Printer;

use crate::{data, files, no_files, page_says, show};

fn bare(mut ruleset: Ruleset) -> Ruleset {
    for table in &mut ruleset.tables {
        table.handle = None;
        table.objects.iter_mut().for_each(|of| of.handle = None);
        for set in &mut table.sets {
            set.handle = None;
            // JSON names the type of what a map gives, text may have an expression of it.
            set.data = set.data.take().map(|data| KeyType::Types(data.types()));
        }
        table.flowtables.iter_mut().for_each(|of| of.handle = None);
        for chain in &mut table.chains {
            chain.handle = None;
            chain
                .rules
                .iter_mut()
                .for_each(|of| (of.handle, of.position) = (None, Position::default()));
        }
    }
    ruleset
}

fn without_meta(json: &Json) -> Json {
    let Some(Json::List(list)) = json.get("nftables") else { return json.clone() };
    Json::List(list.iter().filter(|item| item.get("metainfo").is_none()).cloned().collect())
}

#[test]
fn dumps_of_nftables() {
    let Some(data) = data() else { return };
    let mut count = [0usize; 6];
    let mut broken = 0;
    for file in files(&data.join("nftables/tests/shell/testcases"), ".nft") {
        let name = file.strip_prefix(data).expect("below").display().to_string();
        let text = std::fs::read_to_string(&file).expect("text");
        count[0] += 1;
        let model = match nft::text::parse(&name, &text, &no_files) {
            Ok(model) => model,
            Err(error) => {
                show(|| format!("TEXT {error}"));
                continue;
            }
        };
        count[1] += 1;
        let printed = nft::text::print::ruleset(&model, Printer::default());
        // The kernel's count of elements is no part of the ruleset.
        let text: String = text
            .lines()
            .map(|line| format!("{}\n", line.split("\t# count").next().unwrap_or(line)))
            .collect();
        if printed == text {
            count[2] += 1;
        } else {
            let differing = printed.lines().zip(text.lines()).find(|(a, b)| a != b);
            show(|| format!("PRINT {name}: {differing:?}"));
        }
        let again = nft::text::parse(&name, &printed, &no_files);
        let again = again.map(|read| nft::text::print::ruleset(&read, Printer::default()));
        if again.as_ref().ok() != Some(&printed) {
            broken += 1;
            show(|| format!("AGAIN {name}: {:?}", again.err()));
        }
        let Ok(json) = std::fs::read_to_string(file.with_extension("json-nft")) else { continue };
        count[3] += 1;
        let read = match nft::json::read::ruleset(&json) {
            Ok(read) => read,
            Err(error) => {
                show(|| format!("JSON {name}: {error}"));
                continue;
            }
        };
        if bare(read.clone()) == bare(model.clone()) {
            count[4] += 1;
        } else {
            show(|| format!("MODEL {name}: {}", first_difference(&read, &model)));
        }
        let written =
            Json::parse(&nft::json::write::ruleset(&read, &mut Printer::default())).expect("JSON");
        let wanted = Json::parse(&json).expect("JSON");
        if without_meta(&written) == without_meta(&wanted) {
            count[5] += 1;
        } else {
            let (a, b) = (without_meta(&written), without_meta(&wanted));
            let pair = a
                .items()
                .iter()
                .zip(b.items())
                .find(|(a, b)| a != b)
                .map(|(a, b)| (a.to_text(), b.to_text()));
            show(|| format!("WRITE {name}: {pair:?}"));
        }
    }
    assert_eq!(broken, 0, "what is printed reads and prints as itself");
    page_says(&format!(
        "| dumps of tests/shell, text | {} | {} load, {} print as they were |",
        count[0], count[1], count[2]
    ));
    page_says(&format!(
        "| pairs of text and JSON | {} | {} are one model, {} print as they were |",
        count[3], count[4], count[5]
    ));
}

fn first_difference(json: &Ruleset, text: &Ruleset) -> String {
    let (json, text) = (format!("{:#?}", bare(json.clone())), format!("{:#?}", bare(text.clone())));
    let at = json.lines().zip(text.lines()).position(|(a, b)| a != b).unwrap_or(0);
    let around = |of: &str| {
        of.lines().skip(at.saturating_sub(4)).take(6).map(str::trim).collect::<Vec<_>>().join(" ")
    };
    format!("\n  json {}\n  text {}", around(&json), around(&text))
}
