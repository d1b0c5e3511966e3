//! FNV-1a over what a generator yields and over histograms, as the recorded streams were hashed: every field
//! as eight bytes, lowest first.

use super::generator::Generated;

/// A hash under way.
#[derive(Debug, Clone, Copy)]
pub struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// One field.
    #[inline]
    pub fn field(&mut self, value: u64) {
        for byte in value.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn fields(&mut self, values: impl IntoIterator<Item = u64>) {
        values.into_iter().for_each(|value| self.field(value));
    }

    /// All fields of a packet.
    pub fn packet(&mut self, packet: &Generated) {
        match *packet {
            Generated::Config(config) => {
                let flags = [config.persona_non_grata, config.accept].map(u64::from);
                let [address, begin, end] =
                    [config.address, config.begin, config.end].map(u64::from);
                self.fields([1, address, flags[0], flags[1], begin, end]);
            }
            Generated::Data { data, sequence, train_size, tag } => {
                let [source, destination, tag, iterations, seed] =
                    [data.source, data.destination, tag, data.body.iterations, data.body.seed]
                        .map(u64::from);
                // Both count from 0 or 1 up.
                let [sequence, train_size] = [sequence, train_size].map(|count| count as u64);
                self.fields([0, source, destination, sequence]);
                self.fields([train_size, tag, iterations, seed]);
            }
        }
    }

    /// The hash so far.
    #[must_use]
    pub fn value(self) -> u64 {
        self.0
    }

    /// The hash of a histogram.
    #[must_use]
    pub fn of_histogram(bins: &[u64]) -> u64 {
        let mut hash = Self::default();
        bins.iter().for_each(|&bin| hash.field(bin));
        hash.0
    }
}
