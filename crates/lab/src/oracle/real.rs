//! [`compare_file`]: a ruleset of the wild, stripped to what one packet decides, compared like a drawn one.
//!
//! Each of its built-in chains stands in at FORWARD; the devices are named after interfaces that its rules
//! name, pair after pair.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use rules::model::Family;
use rules::save::{LoadOptions, load};

use super::campaign::examine;
use super::compare::{Difference, Session};
use super::netns::in_fresh;
use crate::device::Device;
use crate::evaluator::Evaluator;
use crate::generate::{Draw, packets};
use crate::real::{RealFile, View, strip};
use crate::scene::{Placement, Scene, Wire};
use crate::summary::Summary;

/// Frames between two readings of the counters.
const BATCH: u16 = 500;
/// Batches for each pair of devices.
const BATCHES: u16 = 4;
/// Fewest packets for each file.
const LEAST: usize = 24_000;
/// Most pairs of devices for one chain.
const MOST_PAIRS: usize = 48;

/// A file that tamis does not load, and why.
pub type Refused = (String, String);

/// Compares every `.save` file of a directory that tamis loads; those that it refuses come second, with why.
pub fn compare_dir(dir: &Path, seed: u64) -> io::Result<(Vec<RealFile>, Vec<Refused>)> {
    each_file(dir, |name, text| compare_file(name, text, seed))
}

/// What `compare` says of every `.save` file of a directory, by name and text; those that it refuses come second,
/// with why.
pub(super) fn each_file<F>(
    dir: &Path,
    mut compare: impl FnMut(&str, &str) -> io::Result<Result<F, String>>,
) -> io::Result<(Vec<F>, Vec<Refused>)> {
    let mut paths: Vec<_> = fs::read_dir(dir)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "save"));
    paths.sort();
    let (mut files, mut refused) = (Vec::new(), Vec::new());
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match compare(&name, &fs::read_to_string(&path)?)? {
            Ok(file) => files.push(file),
            Err(why) => refused.push((name, why)),
        }
    }
    Ok((files, refused))
}

/// Compares one ruleset; `Err` is why tamis does not load it.
pub fn compare_file(name: &str, text: &str, seed: u64) -> io::Result<Result<RealFile, String>> {
    let ruleset = match load(text, &LoadOptions::default()) {
        Ok(loaded) => loaded.ruleset,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let stripped = strip(&ruleset);
    let mut file = RealFile {
        name: name.to_owned(),
        kept: stripped.kept,
        unreached: stripped.unreached,
        left_out: stripped.left_out,
        ..RealFile::default()
    };
    let per_view = LEAST.div_ceil(stripped.views.len().max(1));
    let mut hit = BTreeSet::new();
    for (number, view) in stripped.views.iter().enumerate() {
        let least = per_view.div_ceil(usize::from(BATCH * BATCHES));
        for (shot, devices) in pairs(view, least).into_iter().enumerate() {
            // Only Ethernet has the addresses that `-m mac` asks for.
            let ethernet = shot % 2 == 1 && view.rules.text().contains("-m mac ");
            let wire = if ethernet { Wire::Veth } else { Wire::Tun };
            let scene = Scene::new(ruleset.family, wire, Placement::Forward);
            let scene = Scene { devices: devices.unwrap_or(scene.devices), ..scene };
            let shot = (number * MOST_PAIRS + shot) as u64;
            shoot(scene, seed ^ shot << 32, view, &mut file, &mut hit)?;
        }
    }
    file.hit = hit.len();
    Ok(Ok(file))
}

/// At least `least` pairs of devices, in which each that a rule names comes up, and the usual ones too.
fn pairs(view: &View, least: usize) -> Vec<Option<[Device; 2]>> {
    let named = view
        .devices
        .each_ref()
        .map(|names| names.iter().filter_map(|name| Device::new(name)).collect::<Vec<_>>());
    let [near, far] = &named;
    let count = least.max(near.len() + 1).max(far.len() + 1).min(MOST_PAIRS.max(least));
    let usual = Scene::new(Family::Ipv4, Wire::Tun, Placement::Forward).devices;
    let pick = |names: &[Device], at: usize, other: Device| {
        let at = at % (names.len() + 1);
        names.get(at).copied().unwrap_or(other)
    };
    let pair = |at: usize| {
        let input = pick(near, at, usual[0]);
        // One step behind after each round, so that other pairs meet.
        let output = pick(far, at + at / (near.len() + 1), usual[1]);
        let output = if input == output { usual[1] } else { output };
        (input != output).then_some([input, output])
    };
    (0..count).map(pair).collect()
}

type Hits<'v> = BTreeSet<(&'v str, usize, usize)>;

/// Compares one chain between one pair of devices.
fn shoot<'v>(
    scene: Scene,
    seed: u64,
    view: &'v View,
    file: &mut RealFile,
    hit: &mut Hits<'v>,
) -> io::Result<()> {
    let mut draw = Draw::new(scene, seed);
    let mut sent = Vec::new();
    let text = view.rules.text();
    let difference = in_fresh(|| {
        let mut session = match Session::new(scene, &text)? {
            Ok(session) => session,
            Err(difference) => return Ok(Some(difference)),
        };
        let mut difference: Option<Difference> = None;
        for batch in 0..BATCHES {
            let frames = packets::draw(&mut draw, &view.rules, batch * BATCH, BATCH);
            difference = session.batch(&frames)?;
            file.packets += frames.len() as u64;
            sent.extend(frames);
            if difference.is_some() {
                break;
            }
        }
        note_hits(session.evaluator(), view, hit);
        Ok(difference)
    })?;
    if let Some(difference) = difference {
        let rules = view.rules.clone();
        let mut failure = examine(scene, 0, rules, sent, difference, &mut Summary::default())?;
        failure.story = format!("{} {} {}", file.name, view.name, failure.story);
        file.failures.push(failure);
    }
    Ok(())
}

/// Adds the rules that some packet matched.
fn note_hits<'v>(evaluator: &Evaluator, view: &'v View, hit: &mut Hits<'v>) {
    let table = view.name.split(' ').next().unwrap_or_default();
    for (chain, origin) in evaluator.counters().iter().zip(&view.origins) {
        let rules = chain.entries.len() - 1;
        let entries = chain.entries.iter().take(rules).enumerate();
        let hits = entries.filter(|(_, counters)| counters.packets > 0);
        hit.extend(hits.map(|(rule, _)| (table, *origin, rule)));
    }
}
