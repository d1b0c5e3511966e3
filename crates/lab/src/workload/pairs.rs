//! Pairs of addresses: two walkers, one forward and one back, and exponential windows ahead of them.

use super::preset::Preset;
use super::random::{Mangle, Random};
use super::variant::Variant;

/// The state that the next pair is drawn from.
#[derive(Debug, Clone)]
pub(super) struct Pairs<M> {
    uniform: Random<M>,
    exponential: Random<M>,
    variant: Variant,
    mask: u32,
    window: f64,
    speed: f64,
    at: [u32; 2],
    residues: [f64; 2],
}

impl<M: Mangle> Pairs<M> {
    pub(super) fn new(variant: Variant, preset: &Preset) -> Self {
        Self {
            uniform: Random::new(),
            exponential: Random::new(),
            variant,
            mask: (1 << preset.addresses_log) - 1,
            window: preset.window,
            speed: 2.0 / preset.communications,
            at: [0; 2],
            residues: [0.0; 2],
        }
    }

    /// The next source and destination.
    pub(super) fn next(&mut self) -> (u32, u32) {
        for residue in &mut self.residues {
            *residue += self.speed * self.uniform.unit();
        }
        let [source, destination] = &mut self.at;
        let steps = |residue: &mut f64| {
            let mut steps = 0u32;
            while *residue > 0.0 {
                *residue -= 1.0;
                steps += 1;
            }
            steps
        };
        *source = source.wrapping_add(steps(&mut self.residues[0])) & self.mask;
        *destination = destination.wrapping_sub(steps(&mut self.residues[1])) & self.mask;
        let source = source.wrapping_add(self.exponential.exponential(self.window) as u32);
        let destination = self.at[1].wrapping_add(self.exponential.exponential(self.window) as u32);
        (self.address(source), self.address(destination))
    }

    fn address(&self, place: u32) -> u32 {
        match self.variant {
            Variant::A | Variant::B => M::mangle(place + 1) & self.mask,
            Variant::C => M::mangle((place & self.mask) + 1),
            Variant::D => (place & self.mask) + 1,
        }
    }
}
