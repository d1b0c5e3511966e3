//! [`Summary`]: what a campaign adds up to, and its lines of JSON.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::evaluator::Asked;
use crate::scene::Scene;

/// Packets and rulesets compared in one scene.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compared {
    /// Rulesets.
    pub rulesets: u64,
    /// Packets.
    pub packets: u64,
    /// Of these, packets that the stack refused before the rules.
    pub stack: u64,
    /// Packets that got through.
    pub accepted: u64,
}

/// What a campaign adds up to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// By scene, as [`Scene::words`] names it.
    pub scenes: BTreeMap<String, Compared>,
    /// Packets by what tamis walked the rules as.
    pub layouts: BTreeMap<&'static str, u64>,
    /// By family and match: `ip tcp`.
    pub matches: BTreeMap<String, Asked>,
    /// By family and target: hits of rules that have it.
    pub targets: BTreeMap<String, u64>,
    /// By family and match: differences whose smallest case holds it.
    pub differences: BTreeMap<String, u64>,
    /// All differences.
    pub failures: u64,
}

impl Summary {
    /// Adds another's figures.
    pub fn add(&mut self, other: &Self) {
        for (scene, compared) in &other.scenes {
            let sum = self.scenes.entry(scene.clone()).or_default();
            sum.rulesets += compared.rulesets;
            sum.packets += compared.packets;
            sum.stack += compared.stack;
            sum.accepted += compared.accepted;
        }
        for (layout, packets) in &other.layouts {
            *self.layouts.entry(layout).or_default() += packets;
        }
        for (name, asked) in &other.matches {
            let sum = self.matches.entry(name.clone()).or_default();
            sum.asked += asked.asked;
            sum.yes += asked.yes;
            sum.hot_drops += asked.hot_drops;
        }
        for (name, count) in &other.targets {
            *self.targets.entry(name.clone()).or_default() += count;
        }
        for (name, count) in &other.differences {
            *self.differences.entry(name.clone()).or_default() += count;
        }
        self.failures += other.failures;
    }

    /// Packets compared in scenes that `keep` takes.
    #[must_use]
    pub fn packets(&self, keep: impl Fn(Scene) -> bool) -> u64 {
        let scenes = self.scenes.iter();
        scenes
            .filter(|(words, _)| Scene::parse(words).is_some_and(&keep))
            .map(|(_, compared)| compared.packets)
            .sum()
    }

    /// One JSON object a line: scenes, then matches, then targets.
    #[must_use]
    pub fn json_lines(&self) -> String {
        let mut text = String::new();
        for (scene, Compared { rulesets, packets, stack, accepted }) in &self.scenes {
            let _ = writeln!(
                text,
                "{{\"scene\":\"{scene}\",\"rulesets\":{rulesets},\"packets\":{packets},\
                 \"stack\":{stack},\"accepted\":{accepted}}}"
            );
        }
        for (name, Asked { asked, yes, hot_drops }) in &self.matches {
            let differences = self.differences.get(name).copied().unwrap_or(0);
            let (family, name) = name.split_once(' ').unwrap_or(("", name));
            let _ = writeln!(
                text,
                "{{\"family\":\"{family}\",\"match\":\"{name}\",\"packets\":{asked},\"yes\":{yes},\
                 \"hotdrop\":{hot_drops},\"differences\":{differences}}}"
            );
        }
        for (name, hits) in &self.targets {
            let differences = self.differences.get(name).copied().unwrap_or(0);
            let (family, name) = name.split_once(' ').unwrap_or(("", name));
            let _ = writeln!(
                text,
                "{{\"family\":\"{family}\",\"target\":\"{name}\",\"packets\":{hits},\
                 \"differences\":{differences}}}"
            );
        }
        text
    }
}
