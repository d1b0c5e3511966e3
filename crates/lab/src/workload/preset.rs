//! The eight parameter mixes of the exercise.

/// The parameters of one mix of packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Preset {
    /// Its number, from 1.
    pub number: usize,
    /// Logarithm of the addresses.
    pub addresses_log: u32,
    /// Logarithm of the packet trains that run side by side.
    pub trains_log: u32,
    /// Mean packets of a train.
    pub train_size: f64,
    /// Mean trains of a communication.
    pub trains: f64,
    /// Mean distance of the addresses in use from the walker.
    pub window: f64,
    /// Mean communications of an address.
    pub communications: f64,
    /// Mean work of a packet, in fingerprint steps.
    pub work: f64,
    /// Share of config packets.
    pub config: f64,
    /// Share of config packets that ban.
    pub png: f64,
    /// Share of config packets that accept.
    pub accepting: f64,
}

/// All of them, in order.
pub const PRESETS: [Preset; 8] = [
    preset(1, [11, 12], [5., 1., 3., 3.], 3822., [0.24, 0.04, 0.96]),
    preset(2, [12, 10], [1., 3., 3., 1.], 2644., [0.11, 0.09, 0.92]),
    preset(3, [12, 10], [4., 3., 6., 2.], 1304., [0.10, 0.03, 0.90]),
    preset(4, [14, 10], [5., 5., 6., 2.], 315., [0.08, 0.05, 0.90]),
    preset(5, [15, 14], [9., 16., 7., 10.], 4007., [0.02, 0.10, 0.84]),
    preset(6, [15, 15], [9., 10., 9., 9.], 7125., [0.01, 0.20, 0.77]),
    preset(7, [15, 15], [10., 13., 8., 10.], 5328., [0.04, 0.18, 0.80]),
    preset(8, [16, 14], [15., 12., 9., 5.], 8840., [0.04, 0.19, 0.76]),
];

const fn preset(
    number: usize,
    [addresses_log, trains_log]: [u32; 2],
    [train_size, trains, window, communications]: [f64; 4],
    work: f64,
    [config, png, accepting]: [f64; 3],
) -> Preset {
    Preset {
        number,
        addresses_log,
        trains_log,
        train_size,
        trains,
        window,
        communications,
        work,
        config,
        png,
        accepting,
    }
}

impl Preset {
    /// Config packets before the clock starts: addresses to the power of 3/2.
    #[must_use]
    pub fn warm_up(&self) -> usize {
        f64::from(1u32 << self.addresses_log).powf(1.5) as usize
    }

    /// The mix of a number from 1 to 8.
    #[must_use]
    pub fn of(number: usize) -> Option<&'static Self> {
        PRESETS.get(number.checked_sub(1)?)
    }
}
