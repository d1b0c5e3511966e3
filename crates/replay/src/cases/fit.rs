//! Holds the interfaces and senders that cases name to the host that they are about.

use dataplane::Config;

use super::{Cases, Expected};
use crate::error::Error;
use crate::rules_file::RulesFile;
use crate::walk::names;

impl Cases {
    /// Refuses interfaces that the host does not have, and own packets with a source that is none of its addresses.
    ///
    /// # Errors
    /// The first of them, with its place.
    pub fn fit(&self, config: &Config) -> Result<(), Error> {
        self.defaults.fit(&self.file, config)?;
        self.packets().try_for_each(|packet| {
            let wrong = |error: crate::spec::SpecError| Error::Cases {
                file: self.file.clone(),
                line: packet.at.0,
                column: packet.at.1,
                what: format!("expected {}, in \"{}\"", error.what, packet.text),
            };
            packet.spec.fit(&packet.text, config).map_err(wrong)
        })
    }

    /// Warns of interfaces that cases name, each once.
    #[must_use]
    pub fn warnings(&self, files: &[RulesFile], config: &Config) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for packet in self.packets() {
            for warning in packet.spec.warnings(&packet.text, files, config) {
                if !all.contains(&warning) {
                    all.push(warning);
                }
            }
        }
        all.into_iter().map(|warning| format!("{}: {warning}", self.file)).collect()
    }

    fn packets(&self) -> impl Iterator<Item = &Expected> {
        self.cases.iter().flat_map(|case| &case.packets)
    }
}

impl super::Defaults {
    fn fit(&self, file: &str, config: &Config) -> Result<(), Error> {
        let named = self.input.iter().map(|name| ("in", name));
        let named = named.chain(self.output.iter().map(|name| ("out", name)));
        let mut named = named.chain(self.nets.iter().map(|(name, _)| ("net", name)));
        named.try_for_each(|(key, name)| {
            let what = names::fit(name, &config.host.links);
            what.map_err(|what| Error::Given(format!("{file}: [defaults] {key}: expected {what}")))
        })
    }
}
