//! Tells a difference so that it can be understood: the packet, the rules, both paths, and the step at
//! which they part.

use std::fmt::Write;
use std::io;

use packet::{Checksums, parse};

use super::compare::Difference;
use super::kernel::Kernel;
use super::netns;
use crate::evaluator::Evaluator;
use crate::hex::hex;
use crate::scene::Scene;

/// The story of the last of `frames`, which makes the difference; the others only bring the rules into
/// the state it needs.
pub fn explain(
    scene: Scene,
    rules: &str,
    frames: &[Vec<u8>],
    difference: &Difference,
) -> io::Result<String> {
    let mut text = format!("{} [{}]\n--- rules\n{rules}", difference, scene.words());
    let Some((last, before)) = frames.split_last() else { return Ok(text) };
    let headers = parse(scene.link(), last, last.len(), Checksums::Verify);
    let _ = writeln!(text, "--- packet {}\n{headers:?}", hex(last));
    if matches!(difference, Difference::Load(_)) {
        return Ok(text);
    }
    let kernel = kernel_path(scene, rules, before, last)?;
    let tamis = tamis_path(scene, rules, before, last);
    let _ = writeln!(text, "--- kernel's path\n{}", kernel.join("\n"));
    let _ = writeln!(text, "--- tamis's path\n{}", tamis.join("\n"));
    let parted = (0..kernel.len().max(tamis.len())).find(|at| kernel.get(*at) != tamis.get(*at));
    if let Some(at) = parted {
        let step = |path: &[String]| path.get(at).cloned().unwrap_or_else(|| "the end".to_owned());
        let _ = writeln!(text, "--- they part: kernel {}, tamis {}", step(&kernel), step(&tamis));
    }
    Ok(text)
}

fn kernel_path(
    scene: Scene,
    rules: &str,
    before: &[Vec<u8>],
    last: &[u8],
) -> io::Result<Vec<String>> {
    netns::in_fresh(|| {
        let mut kernel = Kernel::new(scene)?;
        kernel.load_traced(rules)?;
        for frame in before {
            kernel.send(frame)?;
            kernel.traced()?;
        }
        kernel.send(last)?;
        kernel.traced()
    })
}

fn tamis_path(scene: Scene, rules: &str, before: &[Vec<u8>], last: &[u8]) -> Vec<String> {
    let mut evaluator = match Evaluator::new(scene, rules) {
        Ok(evaluator) => evaluator,
        Err(error) => return vec![error.to_string()],
    };
    for frame in before {
        evaluator.evaluate(&mut frame.clone());
    }
    let (evaluated, steps) = evaluator.path(&mut last.to_vec());
    let mut path: Vec<String> = steps.into_iter().map(|step| step.0).collect();
    path.extend(evaluator.unknown().map(str::to_owned));
    if path.is_empty() {
        path.push(evaluated.fate.word().to_owned());
    }
    path
}
