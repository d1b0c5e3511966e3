//! The chains that a packet walked, as a diagram: one box for each walk of a chain, in order, with the rules that it
//! matched there; from the rule that jumped to the chain, and at last to the verdict. Graphviz's text, or SVG.

use std::fmt::Write;

use packet::visible::word;
use rules::Outcome;
use rules::eval;

use super::story::{Step, Story};
use super::text::result;
use crate::report::escape;
use crate::rules_file::RulesFile;

/// Columns of a line in a box.
const COLUMNS: usize = 72;
/// Pixels of a character, a line and a step to the right.
const WIDTH: usize = 7;
const HEIGHT: usize = 17;
const STEP: usize = 36;
const MARGIN: usize = 12;

/// A walk of a chain.
struct Walked {
    title: String,
    /// What it came to there.
    lines: Vec<String>,
    /// Rules in a row that did not match, not said yet.
    quiet: usize,
    depth: usize,
    /// The walk that it was jumped to from.
    from: Option<usize>,
}

impl Walked {
    fn new(title: String, depth: usize, from: Option<usize>) -> Self {
        Self { title, lines: Vec::new(), quiet: 0, depth, from }
    }

    fn say(&mut self, line: &str) {
        self.say_quiet();
        self.lines.push(cut(&word(line)));
    }

    fn say_quiet(&mut self) {
        match std::mem::take(&mut self.quiet) {
            0 => {}
            1 => self.lines.push("… 1 rule did not match".to_owned()),
            quiet => self.lines.push(format!("… {quiet} rules did not match")),
        }
    }
}

impl Story {
    /// The diagram as Graphviz reads it.
    #[must_use]
    pub fn dot(&self) -> String {
        let mut out = String::from(
            "digraph walk {\n  rankdir=TB;\n  node [shape=box, fontname=\"monospace\", fontsize=10];\n",
        );
        let walked = self.walked();
        // Writing to a String cannot fail.
        let _ = writeln!(out, "  packet [shape=plain, label=\"{}\"];", quoted(&cut(&self.packet)));
        for (at, walk) in walked.iter().enumerate() {
            let lines: String = walk.lines.iter().map(|line| quoted(line) + "\\l").collect();
            let _ = writeln!(out, "  c{at} [label=\"{}\\l{lines}\"];", quoted(&walk.title));
        }
        let end = self.verdict().word();
        let _ = writeln!(out, "  end [shape=oval, label=\"{}\"];", end.to_uppercase());
        let mut before = "packet".to_owned();
        for (at, walk) in walked.iter().enumerate() {
            let from = walk.from.map_or(before, |from| format!("c{from}"));
            let _ = writeln!(out, "  {from} -> c{at};");
            before = format!("c{at}");
        }
        let _ = writeln!(out, "  {before} -> end;\n}}");
        out
    }

    /// The diagram as a picture.
    #[must_use]
    pub fn svg(&self) -> String {
        let walked = self.walked();
        let (mut body, mut y) = (String::new(), MARGIN + HEIGHT);
        text(&mut body, (MARGIN, y), &cut(&self.packet));
        let mut corners: Vec<(usize, usize)> = Vec::new();
        for walk in &walked {
            let (x, top) = (MARGIN + walk.depth * STEP, y + HEIGHT / 2);
            let height = (walk.lines.len() + 1) * HEIGHT + HEIGHT / 2;
            if let Some((x, bottom)) = walk.from.and_then(|from| corners.get(from)) {
                let (x, to) = (x + STEP / 2, top + HEIGHT);
                let right = MARGIN + walk.depth * STEP;
                // Writing to a String cannot fail.
                let _ = writeln!(body, "<path class=\"jump\" d=\"M{x} {bottom}V{to}H{right}\"/>");
            }
            let width = (COLUMNS + 2) * WIDTH;
            let _ = writeln!(
                body,
                "<rect x=\"{x}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" rx=\"4\"/>"
            );
            y = top;
            for line in [&walk.title].into_iter().chain(&walk.lines) {
                y += HEIGHT;
                text(&mut body, (x + WIDTH, y), line);
            }
            y = top + height;
            corners.push((x, y));
        }
        y += HEIGHT + HEIGHT / 2;
        text(&mut body, (MARGIN, y), &cut(&self.conclusion()));
        let deepest = walked.iter().map(|walk| walk.depth).max().unwrap_or(0);
        let (width, height) = (2 * MARGIN + deepest * STEP + (COLUMNS + 2) * WIDTH, y + MARGIN);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" font-family=\"ui-monospace, 'DejaVu Sans Mono', \
             Menlo, Consolas, monospace\" font-size=\"11\">\n\
             <style>rect{{fill:#fff;stroke:#456}}.jump{{fill:none;stroke:#456}}</style>\n\
             <rect width=\"100%\" height=\"100%\" style=\"stroke:none\"/>\n{body}</svg>\n"
        )
    }

    /// The chains that it walked, in order.
    fn walked(&self) -> Vec<Walked> {
        let Some(file) = self.end.family.and_then(|family| self.report.file(family)) else {
            return Vec::new();
        };
        let mut all: Vec<Walked> = Vec::new();
        // The chains that the packet is in, each with its walk.
        let mut stack: Vec<(Option<(u32, u32)>, usize)> = Vec::new();
        for step in &self.steps {
            match step {
                Step::Enters { table, chain, hook } => {
                    let (table, chain) = file.base_chain(*table, *chain, *hook);
                    let title = format!("{table}/{chain}");
                    stack = vec![(None, all.len())];
                    all.push(Walked::new(title, 0, None));
                }
                Step::Rule { at, .. } => {
                    let chain = (at.table, at.chain);
                    let (table, its, _) = file.rule(*at);
                    match stack.iter().position(|(one, _)| *one == Some(chain)) {
                        Some(depth) => stack.truncate(depth + 1),
                        None if its.base.is_some() => {
                            stack.truncate(1);
                            stack.iter_mut().for_each(|(one, _)| *one = Some(chain));
                        }
                        None => {
                            let title = format!("{}/{}", file.ruleset.title(table), its.name);
                            let from = stack.last().map(|(_, walk)| *walk);
                            let walk = Walked::new(title, stack.len(), from);
                            stack.push((Some(chain), all.len()));
                            all.push(walk);
                        }
                    }
                    if let Some(walk) = stack.last().and_then(|(_, walk)| all.get_mut(*walk)) {
                        tell(walk, file, step);
                    }
                }
                Step::Policy { .. } => {
                    if let Some(walk) = stack.first().and_then(|(_, walk)| all.get_mut(*walk)) {
                        tell(walk, file, step);
                    }
                }
                _ => {}
            }
        }
        all.iter_mut().for_each(Walked::say_quiet);
        all
    }
}

/// What a packet came to in a chain.
fn tell(walk: &mut Walked, file: &RulesFile, step: &Step) {
    match step {
        Step::Rule { outcome: Outcome::NO, .. } => walk.quiet += 1,
        Step::Rule { at, outcome, alive, refused, .. } => {
            let (table, _, rule) = file.rule(*at);
            let text = file.text_in_chain(*at);
            let result = result(rule, table, *outcome, *alive, refused.as_deref());
            walk.say(&format!("L{} {result}: {text}", file.line(rule.line).1));
        }
        Step::Policy { table, chain } => {
            walk.say(&file.by_text(eval::By::Policy { table: *table, chain: *chain }));
        }
        _ => {}
    }
}

/// A line that fits a box.
fn cut(line: &str) -> String {
    match line.chars().count() > COLUMNS {
        true => line.chars().take(COLUMNS - 1).chain(['…']).collect(),
        false => line.to_owned(),
    }
}

/// Text between the quotes of Graphviz.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

fn text(out: &mut String, (x, y): (usize, usize), line: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "<text x=\"{x}\" y=\"{y}\">{}</text>", escape(line));
}
