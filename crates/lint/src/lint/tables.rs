//! [`lint`]: looks through the text of rules, and through one table after the other.

use std::collections::{BTreeSet, HashSet};

use host::Links;
use rules::Backend;
use rules::eval::RuleRef;
use rules::model::Ruleset;

use super::code::{Code, Severity};
use super::effort::Effort;
use super::examined::Examined;
use super::finding::{Finding, Findings};
use super::names::OnHost;
use super::{chains, check, dead, exposed, names, redundant, wide};
use crate::diagram::TooLarge;

/// What the restore command refuses about a text that was read as these rules. Source: iptables 1.8.9
/// `iptables-restore.c`, which compares lines with `"COMMIT\\n"`; that of iptables-nft does not.
#[must_use]
pub fn lint_text(text: &str, ruleset: &Ruleset) -> Option<Finding> {
    let is_open = text.lines().next_back() == Some("COMMIT") && !text.ends_with('\n');
    if !is_open || ruleset.backend == Backend::Nft {
        return None;
    }
    Some(Finding {
        code: Code::OpenCommit,
        severity: Severity::Error,
        table: ruleset.tables.last()?.name.to_string(),
        chain: String::new(),
        line: text.lines().count() as u32,
        rule: "COMMIT".to_owned(),
        text: "no newline after the last COMMIT: iptables-legacy-restore refuses the file"
            .to_owned(),
        about: String::new(),
        by: Vec::new(),
        witness: None,
    })
}

/// Looks for everything that there is to find. `links` are the host's, if they are known.
#[must_use]
pub fn lint(ruleset: &Ruleset, links: Option<&Links>) -> Findings {
    lint_on(ruleset, &OnHost { links: links.cloned(), ..OnHost::default() })
}

/// Looks for everything that there is to find, with all that is known of the host.
#[must_use]
pub fn lint_on(ruleset: &Ruleset, host: &OnHost) -> Findings {
    let mut all = Findings { findings: names::findings(ruleset, host), ..Findings::default() };
    let mut unproven = BTreeSet::new();
    match exposed::findings(ruleset) {
        Ok(found) => all.findings.extend(found),
        Err(TooLarge) => _ = unproven.insert("nat"),
    }
    let links = host.links.as_ref();
    for (index, table) in ruleset.tables.iter().enumerate() {
        let used = chains::used(table);
        all.findings.extend(chains::findings(ruleset, table, &used));
        if let Some(links) = links.filter(|links| !links.is_empty()) {
            all.findings.extend(chains::lacking_interfaces(ruleset, table, links));
        }
        match of_packets(ruleset, index, &used) {
            Ok(found) => {
                all.findings.extend(found.findings);
                all.contradicted += found.contradicted;
                unproven.extend((!found.unproven.is_empty()).then_some(&*table.name));
            }
            Err(TooLarge) => _ = unproven.insert(&table.name),
        }
    }
    let tables = ruleset.tables.iter().map(|table| &*table.name);
    all.unproven = tables.filter(|name| unproven.contains(name)).map(str::to_owned).collect();
    all.findings.sort_by_key(|finding| (finding.line, finding.severity, finding.code));
    all
}

fn of_packets(ruleset: &Ruleset, index: usize, used: &[bool]) -> Result<Findings, TooLarge> {
    let mut examined = Examined::of(ruleset, index)?;
    let mut found = Findings::default();
    let mut dead = dead::findings(&mut examined, used)?;
    examined.effort = Effort::checking();
    dead.retain(|(at, finding)| {
        let holds = check::never_hits(&mut examined, *at, finding.code);
        found.contradicted += usize::from(!holds);
        holds
    });
    let are_dead: HashSet<RuleRef> = dead.iter().map(|(at, _)| *at).collect();
    found.findings.extend(dead.into_iter().map(|(_, finding)| finding));
    found.findings.extend(redundant::findings(&mut examined, &are_dead)?);
    examined.effort = Effort::showing();
    found.findings.extend(wide::findings(&mut examined)?);
    found.unproven.extend(examined.effort.lacks().then(|| examined.table.name.to_string()));
    Ok(found)
}
