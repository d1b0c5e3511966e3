//! A difference made small: packets are left out, then rules, as long as something differs.

use lab::oracle::netns::in_fresh;

use super::trial::{Found, Input, Stage};

/// The smallest stage that still differs, and the story of its packets; `None` if it does not differ again.
pub(super) fn shrink(mut stage: Stage, mut inputs: Vec<Input>) -> Option<(Stage, String)> {
    differs(&stage, &inputs)?;
    let mut step = inputs.len() / 2;
    while step > 0 {
        let mut at = 0;
        while at < inputs.len() {
            let mut fewer = inputs.clone();
            fewer.drain(at..(at + step).min(inputs.len()));
            match differs(&stage, &fewer) {
                Some(_) => inputs = fewer,
                None => at += step,
            }
        }
        step /= 2;
    }
    let mut at = 0;
    while at < stage.rules.len() {
        let mut fewer = stage.clone();
        let is_rule = fewer.rules.remove(at).starts_with("-A");
        if is_rule && differs(&fewer, &inputs).is_some() {
            stage = fewer;
        } else {
            at += 1;
        }
    }
    let story = differs(&stage, &inputs)?;
    let all = inputs.iter().map(|(near, bytes)| {
        format!("{} {}\n", if *near { "t0" } else { "t1" }, super::trial::show(bytes))
    });
    Some((stage, all.collect::<String>() + &story))
}

fn differs(stage: &Stage, inputs: &[Input]) -> Option<String> {
    let mut left = inputs.iter().cloned();
    match in_fresh(|| stage.play(|_| left.next())) {
        Ok(Found::Differs(_, story)) => Some(story),
        _ => None,
    }
}
