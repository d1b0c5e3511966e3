//! Verdicts over time as stacked bars: vector graphics of our own, the numbers of every bar as its tooltip.
//!
//! The drawing is stretched to the width of the screen, so no text stands in it: labels are beside it, at
//! percentages. What was not accepted lies at the bottom, where heights compare; anything that is not zero
//! is at least [`LEAST`] high. A second drawing leaves out what was accepted, which mostly hides the rest.

use std::fmt::{Result, Write};

use conntrack::SECOND;

use super::markup::{day, escape};
use super::ticks::{compact, decimal_step, ticks, words};
use crate::report::Report;
use crate::report::text::number;
use crate::report::timeline::{Axis, Bin, Bins, VERDICTS};
use crate::time_text::time_text;

/// Height of the drawing in its own units, and width of a bar.
const HEIGHT: u64 = 1000;
const BAR: u64 = 10;
/// Height of a bar that is not zero.
const LEAST: u64 = 14;
/// Bars up to this number stand apart.
const APART: usize = 80;
/// Verdicts from the bottom up: drop, reject, unknown, accept, skip.
const STACK: [usize; 5] = [1, 2, 3, 0, 4];
const ACCEPT: usize = 0;

impl Report {
    /// The chart, if its bins were gathered and there is more than one.
    pub(super) fn write_chart(&self, out: &mut String) -> Result {
        let Some(timeline) = &self.timeline else { return Ok(()) };
        let bins = timeline.shown();
        if bins.iter().len() < 2 {
            return Ok(());
        }
        let mut seen = Bin::default();
        for (_, bin) in bins.iter() {
            for (sum, packets) in seen.iter_mut().zip(bin) {
                *sum += packets;
            }
        }
        let both = seen[ACCEPT] > 0 && seen.iter().sum::<u64>() > seen[ACCEPT];
        out.push_str("<figure class=\"chart\">\n");
        write_controls(out, &seen, both)?;
        write_plot(out, bins, "every", &STACK)?;
        if both {
            let rest: Vec<usize> = STACK.into_iter().filter(|verdict| *verdict != ACCEPT).collect();
            write_plot(out, bins, "rest", &rest)?;
        }
        write_caption(out, bins, timeline.left_out())?;
        out.push_str("<output></output>\n</figure>\n");
        Ok(())
    }
}

/// The legend, and the choice between the drawings.
fn write_controls(out: &mut String, seen: &Bin, both: bool) -> Result {
    out.push_str("<div class=\"controls\"><span class=\"legend\">");
    for (verdict, packets) in VERDICTS.iter().zip(seen) {
        if *packets > 0 {
            write!(out, "<span><i class=\"key {verdict}\"></i>{verdict}</span>")?;
        }
    }
    out.push_str("</span>");
    if both {
        out.push_str(
            "<fieldset><legend>Show</legend>\
             <label><input type=\"radio\" name=\"chart\" value=\"every\" checked>\
             <span>all packets</span></label>\
             <label><input type=\"radio\" name=\"chart\" value=\"rest\">\
             <span>without accepted</span></label></fieldset>",
        );
    }
    out.push_str("</div>\n");
    Ok(())
}

fn write_plot(out: &mut String, bins: &Bins, class: &str, stack: &[usize]) -> Result {
    let count = bins.iter().len();
    let highest = bins.iter().map(|(_, bin)| total(bin, stack)).max().unwrap_or(0).max(1);
    let step = decimal_step(highest, 4);
    let top = highest.div_ceil(step).saturating_mul(step);
    write!(out, "<div class=\"plot {class}\">")?;
    for mark in (0..=top / step).map(|index| index * step) {
        let up = 100.0 * mark as f64 / top as f64;
        write!(out, "<span class=\"y\" style=\"bottom:{up:.2}%\"><b>{}</b></span>", compact(mark))?;
    }
    write_times(out, bins)?;
    writeln!(
        out,
        "<svg viewBox=\"0 0 {} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"packets by verdict over time\">",
        count as u64 * BAR
    )?;
    for (index, verdict) in stack.iter().enumerate() {
        let path = bars(bins, &stack[..index], *verdict, top);
        if !path.is_empty() {
            writeln!(out, "<path class=\"{}\" d=\"{path}\"/>", VERDICTS[*verdict])?;
        }
    }
    write_tooltips(out, bins, stack)?;
    out.push_str("</svg></div>\n");
    Ok(())
}

fn total(bin: &Bin, stack: &[usize]) -> u64 {
    stack.iter().map(|verdict| bin[*verdict]).sum()
}

/// The bars of one verdict as a path, on top of those below.
fn bars(bins: &Bins, below: &[usize], verdict: usize, top: u64) -> String {
    let gap = u64::from(bins.iter().len() <= APART);
    let mut path = String::new();
    for (index, (_, bin)) in bins.iter().enumerate() {
        let base: u64 = below.iter().map(|verdict| height(bin[*verdict], top)).sum();
        let height = height(bin[verdict], top).min(HEIGHT.saturating_sub(base));
        if height == 0 {
            continue;
        }
        let (x, width) = (index as u64 * BAR + gap, BAR - 2 * gap);
        // Writing to a String cannot fail.
        let _ = write!(path, "M{x} {}v-{height}h{width}v{height}z", HEIGHT - base);
    }
    path
}

fn height(packets: u64, top: u64) -> u64 {
    let height = (packets as f64 * HEIGHT as f64 / top as f64).round() as u64;
    if packets > 0 { height.max(LEAST) } else { 0 }
}

/// One tall invisible bar for each bin, with its numbers.
fn write_tooltips(out: &mut String, bins: &Bins, stack: &[usize]) -> Result {
    let dated = is_dated(bins);
    for (index, (from, bin)) in bins.iter().enumerate() {
        if total(bin, stack) == 0 {
            continue;
        }
        let x = index as u64 * BAR;
        let span = escape(&span(bins, from, dated));
        write!(out, "<rect x=\"{x}\" width=\"{BAR}\" height=\"{HEIGHT}\"><title>{span}")?;
        for (verdict, packets) in VERDICTS.iter().zip(bin) {
            if *packets > 0 {
                write!(out, "\n{verdict} {}", number(*packets))?;
            }
        }
        out.push_str("</title></rect>\n");
    }
    Ok(())
}

/// Whether the bins lie on several days.
fn is_dated(bins: &Bins) -> bool {
    let (from, to) = ends(bins);
    day(&time_text(from)) != day(&time_text(to.saturating_sub(1)))
}

/// Start of the first bin and end of the last.
fn ends(bins: &Bins) -> (u64, u64) {
    let mut starts = bins.iter().map(|(from, _)| from);
    let first = starts.next().unwrap_or(0);
    (first, starts.last().unwrap_or(first).saturating_add(bins.width()))
}

/// What a bin spans, in words.
fn span(bins: &Bins, from: u64, dated: bool) -> String {
    let (axis, width) = (bins.axis(), bins.width());
    let to = from.saturating_add(width);
    match axis {
        Axis::Time => {
            let both = [from, to].map(|at| words(axis, at, width, dated));
            format!("{} to {} UTC", both[0], both[1])
        }
        Axis::Order => format!("packets {} to {}", number(from + 1), number(to)),
    }
}

/// Marks of the lower axis.
fn write_times(out: &mut String, bins: &Bins) -> Result {
    let (from, to) = ends(bins);
    let dated = is_dated(bins);
    let (marks, step) = ticks(bins.axis(), from, to, 5);
    for at in marks {
        let percent = 100.0 * (at - from) as f64 / (to - from) as f64;
        if percent <= 90.0 {
            let words = words(bins.axis(), at, step, dated);
            write!(out, "<span class=\"x\" style=\"left:{percent:.2}%\">{words}</span>")?;
        }
    }
    Ok(())
}

fn write_caption(out: &mut String, bins: &Bins, left_out: u64) -> Result {
    out.push_str("<figcaption>");
    match bins.axis() {
        Axis::Time => {
            let (from, to) = ends(bins);
            let (first, last) = (time_text(from), time_text(to.saturating_sub(1)));
            write!(out, "Packets in each {}. Times are UTC, ", width_words(bins.width()))?;
            match (day(&first), day(&last)) {
                (first, last) if first == last => write!(out, "{first}.")?,
                (first, last) => write!(out, "{first} to {last}.")?,
            }
        }
        Axis::Order => write!(
            out,
            "The captures hold no times: packets in their order, {} in each bar.",
            number(bins.width())
        )?,
    }
    if left_out > 0 {
        write!(out, " {} packets without a time are not shown.", number(left_out))?;
    }
    out.push_str("</figcaption>\n");
    Ok(())
}

/// The width of a bin of time.
fn width_words(width: u64) -> String {
    let (unit, name) = match width {
        ..1_000_000 => (1000, "µs"),
        1_000_000..SECOND => (1_000_000, "ms"),
        SECOND..60_000_000_000 => (SECOND, "s"),
        60_000_000_000..3_600_000_000_000 => (60 * SECOND, "min"),
        3_600_000_000_000..86_400_000_000_000 => (3600 * SECOND, "h"),
        _ => (86_400 * SECOND, "d"),
    };
    format!("{} {name}", width / unit)
}

#[cfg(test)]
mod tests {
    use dataplane::FinalVerdict;

    use super::*;
    use crate::report::timeline::Timeline;

    fn two_bins() -> Timeline {
        let mut timeline = Timeline::default();
        for _ in 0..3 {
            timeline.count(Some(1000), &FinalVerdict::Accept(None));
        }
        timeline.count(Some(2000), &FinalVerdict::Unknown);
        timeline
    }

    #[test]
    fn bars_stack_and_never_leave_the_drawing() {
        let timeline = two_bins();
        assert_eq!(bars(timeline.shown(), &[], 3, 4), "M11 1000v-250h8v250z");
        assert_eq!(bars(timeline.shown(), &[1, 2, 3], ACCEPT, 4), "M1 1000v-750h8v750z");
        assert_eq!(height(1, 1_000_000), LEAST);
    }

    #[test]
    fn every_bar_tells_its_numbers() {
        let mut out = String::new();
        write_tooltips(&mut out, two_bins().shown(), &STACK).unwrap();
        assert!(out.contains("<title>00:00:00.000001 to 00:00:00.000002 UTC\naccept 3</title>"));
        assert!(out.contains("\nunknown 1</title>"));
    }

    #[test]
    fn widths_have_a_unit() {
        assert_eq!(width_words(5000), "5 µs");
        assert_eq!(width_words(30 * SECOND), "30 s");
        assert_eq!(width_words(6 * 3600 * SECOND), "6 h");
    }
}
