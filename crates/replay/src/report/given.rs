//! Options that no packet and no rule answers to: most of them are misspelt.

use dataplane::{Path, Start};

use super::Report;
use crate::walk::names::{is_in_rules, of_options};

impl Report {
    /// Warns of connections of the host that were listed after the first packet, and so are not those before it.
    pub(crate) fn warn_of_connections(&mut self, start: &Start) {
        let first = self.captures.iter().filter_map(|capture| capture.first).min();
        let listed = start.connections.as_ref().zip(first);
        if listed.is_some_and(|(listing, first)| listing.is_later(first)) {
            let warning = "conntrack.txt was collected after the first packet: what connections there were before is not known";
            self.warnings.push(warning.to_owned());
        }
    }

    /// Warns of interfaces that no rule names, where rules name some, and of own addresses that no packet has.
    pub(crate) fn warn_of_options(&mut self) {
        let config = &self.config;
        let unnamed: Vec<String> = of_options(config)
            .filter(|(_, name)| *name != "lo" && !is_in_rules(&self.files, name))
            .map(|(option, name)| format!("{option}{name}: no rule names this interface"))
            .collect();
        self.warnings.extend(unnamed);
        self.warnings.extend(config.host.foreign.warning());
        let own = [Path::Input, Path::Output, Path::Loopback];
        let is_met = own.iter().any(|path| self.paths.contains_key(path));
        let is_given = config.host.local.is_some() && config.path.is_none();
        if is_given && !is_met && self.packets > 0 {
            self.warnings.push("--local: no packet has one of these addresses".to_owned());
        }
    }
}
