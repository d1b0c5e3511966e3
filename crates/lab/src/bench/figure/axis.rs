//! An axis: which values it spans, where on it a value lies, and which ones are written beside it.

/// How far apart values are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// By their difference, from 0 on.
    Linear,
    /// By their ratio.
    Logarithmic,
}

/// An axis over some values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Axis {
    scale: Scale,
    /// The ends, as they are drawn: of a logarithmic axis their logarithms.
    low: f64,
    high: f64,
}

impl Axis {
    /// Over all these values and a little more; those that the scale cannot show are not looked at.
    pub(super) fn over(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let drawn = values.filter(|value| value.is_finite() && shows(scale, *value));
        let drawn: Vec<f64> = drawn.map(|value| drawn_as(scale, value)).collect();
        let low = drawn.iter().copied().fold(f64::INFINITY, f64::min);
        let high = drawn.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        match scale {
            Scale::Linear => Self { scale, low: 0.0, high: (high * 1.06).max(f64::MIN_POSITIVE) },
            Scale::Logarithmic => Self { scale, low: low - 0.08, high: high + 0.08 },
        }
    }

    /// Where on the axis a value lies, 0 at its low end and 1 at its high one; what lies beyond is put at the end.
    pub(super) fn place(&self, value: f64) -> f64 {
        let drawn = if shows(self.scale, value) { drawn_as(self.scale, value) } else { self.low };
        ((drawn - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// The values to be written, some 3 to 8 of them.
    pub(super) fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => {
                let step = step(self.high / 4.0);
                (0..9).map(|count| f64::from(count) * step).filter(|at| *at <= self.high).collect()
            }
            Scale::Logarithmic => self.powers(),
        }
    }

    /// Powers of ten; where there are few, twice and five times them too; where there are many, each second one.
    fn powers(&self) -> Vec<f64> {
        let decades = self.high - self.low;
        let (parts, every): (&[f64], i32) = match decades {
            ..0.5 => (&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0], 1),
            ..2.2 => (&[1.0, 2.0, 5.0], 1),
            ..7.0 => (&[1.0], 1),
            _ => (&[1.0], 2),
        };
        let powers = (self.low.floor() as i32..=self.high.ceil() as i32)
            .filter(|power| power.rem_euclid(every) == 0);
        let all = powers.flat_map(|power| parts.iter().map(move |part| part * 10f64.powi(power)));
        all.filter(|at| (self.low..=self.high).contains(&at.log10())).collect()
    }
}

fn shows(scale: Scale, value: f64) -> bool {
    scale == Scale::Linear || value > 0.0
}

fn drawn_as(scale: Scale, value: f64) -> f64 {
    match scale {
        Scale::Linear => value,
        Scale::Logarithmic => value.log10(),
    }
}

/// The next of 1, 2 and 5 times a power of ten.
fn step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0]
        .map(|part| part * power)
        .into_iter()
        .find(|at| *at >= least)
        .unwrap_or(10.0 * power)
}

/// A number as short as it can be.
pub(super) fn short(value: f64) -> String {
    let (value, unit) = match value.abs() {
        1e9.. => (value / 1e9, "G"),
        1e6.. => (value / 1e6, "M"),
        1e3.. => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let rounded = format!("{value:.6}");
    let rounded = rounded.trim_end_matches('0').trim_end_matches('.');
    format!("{rounded}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_as_far_apart_wherever_they_are() {
        let axis = Axis::over(Scale::Logarithmic, [1.0, 1000.0].into_iter());
        let apart = |from: f64| axis.place(from * 10.0) - axis.place(from);
        assert!((apart(1.0) - apart(100.0)).abs() < 1e-9);
        assert_eq!(axis.ticks(), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(axis.place(0.0), 0.0, "what cannot be shown is at the low end");
    }

    #[test]
    fn a_linear_axis_begins_at_0() {
        let axis = Axis::over(Scale::Linear, [3.0, 7.0].into_iter());
        assert_eq!((axis.place(0.0), axis.ticks()), (0.0, vec![0.0, 2.0, 4.0, 6.0]));
        assert!(axis.place(7.0) < 1.0);
    }

    #[test]
    fn nothing_to_show_is_no_panic() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            let axis = Axis::over(scale, [f64::NAN].into_iter());
            assert!(!axis.ticks().is_empty(), "{axis:?}");
        }
    }

    #[test]
    fn numbers_are_short() {
        let shown = [1.0, 1500.0, 2e6, 0.05, 0.0].map(short);
        assert_eq!(shown, ["1", "1.5k", "2M", "0.05", "0"]);
    }
}
