//! Listings of Docker's documentation, of OpenWrt's firewall4 and of Proxmox.

use std::path::Path;

use nft::text::Printer;

use crate::{data, files, no_files, page_says, show};

/// The indented blocks of a page that begin with a table: one for each run of lines.
fn blocks(text: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut within = false;
    for line in text.lines() {
        match line.strip_prefix("    ") {
            Some(rest) if within || rest.starts_with("table ") => {
                if !within || rest.starts_with("table ") {
                    blocks.push(String::new());
                }
                within = true;
                let block = blocks.last_mut().expect("a block");
                block.push_str(rest);
                block.push('\n');
            }
            _ if line.is_empty() => {}
            _ => within = false,
        }
    }
    blocks
}

fn expected(text: &str) -> Option<String> {
    let at = text.find("-- Expect stdout --")? + "-- Expect stdout --".len();
    let end = text[at..].find("-- End --")? + at;
    let script = text[at..end].trim_start();
    script.starts_with("table").then(|| script.to_owned())
}

/// The public listings, each with the name of its file, and how many are Docker's and firewall4's.
pub(crate) fn all(data: &Path) -> (Vec<(String, String)>, usize, usize) {
    let mut texts: Vec<(String, String)> = Vec::new();
    for file in files(&data.join("moby"), ".md") {
        let text = std::fs::read_to_string(&file).expect("text");
        texts.extend(blocks(&text).into_iter().map(|block| (file.display().to_string(), block)));
    }
    let moby = texts.len();
    for file in files(&data.join("firewall4/tests"), "") {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        texts.extend(expected(&text).map(|script| (file.display().to_string(), script)));
    }
    let firewall4 = texts.len() - moby;
    for file in files(&data.join("proxmox"), ".nft") {
        texts.push((file.display().to_string(), std::fs::read_to_string(&file).expect("text")));
    }
    (texts, moby, firewall4)
}

#[test]
fn public_listings() {
    let Some(data) = data() else { return };
    let (texts, moby, firewall4) = all(data);
    let (mut loaded, mut fixed) = (0, 0);
    for (name, text) in &texts {
        match nft::text::parse(name, text, &|_| Ok(Vec::new())) {
            Ok(model) => {
                loaded += 1;
                let printed = nft::text::print::ruleset(&model, Printer::default());
                let again = nft::text::parse(name, &printed, &no_files);
                if again.as_ref() == Ok(&model) {
                    fixed += 1;
                } else {
                    show(|| format!("AGAIN {name}: {:?}", again.err()));
                }
            }
            Err(error) => show(|| format!("LISTING {error}")),
        }
    }
    let (all, rest) = (texts.len(), texts.len() - moby - firewall4);
    let of = format!("Docker {moby}, firewall4 {firewall4}, Proxmox {rest}");
    page_says(&format!(
        "| public listings | {all} ({of}) | {loaded} load, {fixed} print and load as themselves |"
    ));
}
