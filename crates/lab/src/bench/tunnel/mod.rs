//! `tamis-bench tunnel`: the overlay beside its peers, between hosts in network namespaces of one machine.
//!
//! Contract: needs root, but for `workers`. Experiments follow each other. Each of their rounds gives every overlay its turn on a site of its own,
//! one after the other; figures are medians of the rounds, a ratio is the median of what each round gave. Both ends, and what loads them, share the cores
//! of this machine: figures are of the whole, and compare with those of the same run only. Nothing stays behind
//! (`namespace.rs`).
//! Source: the fifth study, "Implementation and Evaluation of CYPHONIC client" (GCCE 2023), slides 16 to 18;
//! `docs/studies-tunnel.md` has what came of it.

mod back;
mod claims;
pub mod evaluation;
pub mod figure;
mod group;
mod hostile;
mod iperf;
mod namespace;
mod overlay;
mod pair;
mod ping;
mod plan;
mod rounds;
mod site;
mod star;
mod trend;
mod workers;

use std::io;
use std::path::PathBuf;

use super::limit;
use super::rows::Rows;
use crate::studies::overlay::{self as study, Form};
use overlay::{Overlay, PEERS, StudyForm, Tamis, Veth, WireGuard};
use rounds::{Figures, Sheet};

pub use overlay::COMMAND;
pub use plan::{Part, Plan};

/// Measures; what is done next is said.
///
/// # Errors
/// Nothing can be measured here.
pub fn run(plan: &Plan, out: &mut Rows, say: &mut dyn FnMut(&str)) -> io::Result<()> {
    if plan.has(Part::Workers) {
        workers::run(plan, out, say)?;
    }
    if plan.only == Some(Part::Workers) {
        return Ok(());
    }
    if let Some(why) = site::cannot() {
        return Err(io::Error::other(why));
    }
    let overlays = overlays(plan, out);
    for experiment in plan.experiments() {
        let name = experiment.name();
        if !out.begins(format!("tunnel, {name}")) {
            continue;
        }
        let mut figures = Figures::default();
        for round in limit::rounds(plan.rounds()) {
            for overlay in &overlays {
                say(&format!("{name}, round {}: {}", round + 1, overlay.name()));
                let whose = (overlay.name(), overlay.workers());
                let mut sheet = figures.sheet(whose, round);
                if let Err(error) = experiment.measure(&**overlay, plan, &mut sheet) {
                    sheet.lack(&format!("{name}: {error}"));
                }
            }
        }
        figures.tell(out);
    }
    let hostile = plan.has(Part::Hostile) && plan.tamis.is_some();
    if hostile && out.begins("tunnel.hostile_cost") {
        out.extend(hostile::cost::rows(plan.rounds()).map_err(io::Error::other)?);
    }
    let answers = claims::rows(out.rows());
    out.extend(answers);
    Ok(())
}

/// Names of all peers.
pub fn peers() -> impl Iterator<Item = &'static str> {
    PEERS.into_iter().map(|(name, _)| name)
}

/// What is there to be measured; what is not is listed.
fn overlays(plan: &Plan, out: &mut Rows) -> Vec<Box<dyn Overlay>> {
    let mut overlays: Vec<Box<dyn Overlay>> = vec![Box::new(Veth)];
    for (name, options) in PEERS.into_iter().filter(|_| plan.peers) {
        let given = plan.programs.iter().find(|(given, _)| given == name);
        match given.map(|(_, path)| path.clone()).or_else(|| on_path(name)) {
            Some(program) => overlays.push(Box::new(WireGuard { name, program, options })),
            None => out.lacks(name, format!("not on PATH (--peer {name}=FILE)")),
        }
    }
    if let Some(program) = &plan.tamis {
        let tamis = |workers| Box::new(Tamis { program: program.clone(), workers });
        match &*plan.workers {
            [] => overlays.push(tamis(None)),
            given => given.iter().for_each(|workers| overlays.push(tamis(Some(*workers)))),
        }
    }
    let own = std::env::current_exe();
    for (_, name) in Form::ALL.into_iter().filter(|_| plan.forms) {
        match &own {
            Ok(program) => overlays.push(Box::new(StudyForm { name, program: program.clone() })),
            Err(error) => out.lacks(name, format!("this program is not found: {error}")),
        }
    }
    overlays
}

/// One end by a form of the study's, told by JSON on standard input; it runs until it is ended.
///
/// # Errors
/// It is told nothing that can be read, or fails.
pub fn end(form: &str) -> io::Result<()> {
    let found = Form::ALL.into_iter().find(|(_, name)| *name == form);
    let (form, _) =
        found.ok_or_else(|| io::Error::other(format!("{form}: no form of the study's")))?;
    let settings = serde_json::from_reader(io::stdin())?;
    study::run(form, &settings, || println!("{}", overlay::READY))
}

/// A program by its name.
fn on_path(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|path| path.join(name)).find(|path| path.is_file())
}

/// What each overlay gets a turn at.
#[derive(Clone, Copy)]
enum Experiment {
    Pair,
    Star(u8),
    Back,
    Hostile,
}

impl Plan {
    fn experiments(&self) -> Vec<Experiment> {
        let mut all = Vec::new();
        for (part, _) in Part::ALL.into_iter().filter(|(part, _)| self.has(*part)) {
            match part {
                Part::Pair => all.push(Experiment::Pair),
                Part::Star => all.extend(self.initiators().iter().copied().map(Experiment::Star)),
                Part::Back => all.push(Experiment::Back),
                Part::Hostile => all.push(Experiment::Hostile),
                // It needs no overlay's turn.
                Part::Workers => {}
            }
        }
        all
    }
}

impl Experiment {
    fn name(self) -> String {
        match self {
            Self::Pair => "one pair".to_owned(),
            Self::Star(initiators) => format!("{initiators} initiators"),
            Self::Back => "an end that is away".to_owned(),
            Self::Hostile => "hostile datagrams".to_owned(),
        }
    }

    /// One overlay's turn in a round.
    fn measure(self, overlay: &dyn Overlay, plan: &Plan, sheet: &mut Sheet<'_>) -> io::Result<()> {
        match self {
            Self::Pair => pair::measure(overlay, plan, sheet),
            Self::Star(initiators) => star::measure(overlay, plan, initiators, sheet),
            Self::Back => back::measure(overlay, sheet),
            Self::Hostile => hostile::measure(overlay, plan, sheet),
        }
    }
}
