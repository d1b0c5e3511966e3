//! Options that no packet and no rule answers to: most of them are misspelt.

use dataplane::Path;
use rules::model::IfaceTest;

use super::Report;
use crate::rules_file::RulesFile;

impl Report {
    /// Warns of interfaces that no rule names, where rules name some, and of own addresses that no packet has.
    pub(crate) fn warn_of_options(&mut self) {
        let config = &self.config;
        let options = config.nets.iter().map(|(name, _)| ("--net", &**name));
        let options = options
            .chain(config.input.iter().map(|name| ("--in", &**name)))
            .chain(config.output.iter().map(|name| ("--out", &**name)));
        let unnamed: Vec<String> = options
            .filter(|(_, name)| *name != "lo" && !is_named(&self.files, name))
            .map(|(option, name)| format!("{option} {name}: no rule names this interface"))
            .collect();
        self.warnings.extend(unnamed);
        let own = [Path::Input, Path::Output, Path::Loopback];
        let is_met = own.iter().any(|path| self.paths.contains_key(path));
        let is_given = config.host.local.is_some() && config.path.is_none();
        if is_given && !is_met && self.packets > 0 {
            self.warnings.push("--local: no packet has one of these addresses".to_owned());
        }
    }
}

/// Whether some rule names an interface, or none names any.
fn is_named(files: &[RulesFile], name: &str) -> bool {
    let mut names_any = false;
    let names = |test: &IfaceTest| match test.prefix {
        true => name.starts_with(&*test.name),
        false => name == &*test.name,
    };
    for file in files {
        for (.., rule) in file.rules() {
            let Some(header) = &rule.header else { continue };
            for test in [header.input(), header.output()].into_iter().flatten() {
                names_any = true;
                if names(test) {
                    return true;
                }
            }
        }
    }
    !names_any
}
