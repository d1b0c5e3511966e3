//! The kernel's own arithmetic, at every rate and phase of its clock, compared with the bounds.

use super::*;
use conntrack::SECOND;
use fastrand::Rng;

const MICROS: u64 = 1_000_000;

/// One entry as a kernel keeps it.
#[derive(Clone)]
struct Kernel {
    hz: u64,
    /// Nanoseconds.
    phase: u64,
    config: TableConfig,
    entry: Option<State>,
    collector: u64,
}

#[derive(Clone, Copy)]
struct State {
    prev: u64,
    expires: u64,
    credit: u64,
    cap: u64,
    cost: u64,
    rate: u64,
    burst: u64,
    current: u64,
    shut: bool,
}

impl Kernel {
    fn new(rng: &mut Rng, config: TableConfig) -> Self {
        let hz = [100, 250, 300, 1000][rng.usize(..4)];
        let phase = rng.u64(..SECOND / hz);
        Self { hz, phase, config, entry: None, collector: rng.u64(..SECOND) }
    }

    fn jiffies(&self, now: u64) -> u64 {
        (now + self.phase) / (SECOND / self.hz)
    }

    /// Credits a tick, of packets and of bytes.
    fn credits(&self) -> (u64, u64) {
        let below = |most: u64| 1 << most.ilog2();
        (below(u64::MAX / (self.hz * 86_400)), below(u64::from(u32::MAX) / self.hz))
    }

    fn user(&self, micros: u64) -> u64 {
        micros.wrapping_mul(self.hz * self.credits().0 / MICROS)
    }

    fn fresh(&self, now: u64) -> State {
        let full = self.credits().1 * self.hz;
        let (credit, cap, cost, rate, burst) = match self.config.speed {
            Speed::Packets { period, burst } => {
                let full = self.user(period * burst);
                let rate = MICROS / period;
                (full, full, self.user(period), rate, rate + burst)
            }
            Speed::Bytes { cost, burst } => {
                let rate = u64::from(u32::MAX / cost - 1) << 4;
                let times = if burst > 0 { u64::from(burst) } else { 1 };
                (full, u64::from(burst), (u64::from(cost) * full) >> 32, rate, times * rate)
            }
        };
        let (prev, expires) = (self.jiffies(now), 0);
        State { prev, expires, credit, cap, cost, rate, burst, current: 0, shut: false }
    }

    fn collect(&mut self, now: u64) {
        let interval = u64::from(self.config.gc_interval) * 1_000_000;
        while self.collector <= now {
            let at = self.jiffies(self.collector);
            self.entry = self.entry.filter(|entry| at < entry.expires);
            self.collector += interval;
        }
    }

    fn ask(&mut self, now: u64, len: u64) -> bool {
        self.collect(now);
        let at = self.jiffies(now);
        let mut state = match self.entry {
            Some(state) => self.recalculated(state, at),
            None => self.fresh(now),
        };
        state.expires = at + u64::from(self.config.expire) * self.hz / 1000;
        let is_bytes = matches!(self.config.speed, Speed::Bytes { .. });
        let within = if self.config.rate_match.is_some() {
            state.current += if is_bytes { len } else { 1 };
            !state.shut && state.current <= state.burst
        } else {
            let full = self.credits().1 * self.hz;
            let cost = match is_bytes {
                true => ((len / 16 + 1) * state.cost).min(full),
                false => state.cost,
            };
            if is_bytes && state.credit < cost && state.cap > 0 {
                (state.cap, state.credit) = (state.cap - 1, full);
            }
            let within = state.credit >= cost;
            state.credit -= if within { cost } else { 0 };
            within
        };
        self.entry = Some(state);
        within
    }

    fn recalculated(&self, mut state: State, at: u64) -> State {
        let delta = at - state.prev;
        if let Some(interval) = self.config.rate_match {
            let interval = u64::from(interval) * self.hz;
            if delta >= interval {
                let shut = state.current * interval > delta * state.rate;
                return State { prev: at, shut, current: 0, ..state };
            }
            return state;
        }
        state.prev = at;
        let (packets, bytes) = self.credits();
        (state.credit, _) = match self.config.speed {
            Speed::Packets { .. } => {
                (state.credit.wrapping_add(delta.wrapping_mul(packets)).min(state.cap), ())
            }
            Speed::Bytes { .. } => ((state.credit + delta * bytes).min(bytes * self.hz), ()),
        };
        state
    }
}

fn draw(rng: &mut Rng) -> TableConfig {
    let speed = match rng.bool() {
        true => {
            let rate = [1, 2, 5, 10, 50, 100, 1000, 7, 3][rng.usize(..9)];
            let unit = if rng.u8(..4) == 0 { 60 } else { 1 };
            Speed::Packets {
                period: MICROS * unit / rate,
                burst: [1, 1, 2, 3, 5, 20][rng.usize(..6)],
            }
        }
        false => Speed::Bytes {
            // 4 kb, 64 kb, 1 Mb, 40 Mb a second.
            cost: [16_711_935, 1_048_320, 65_534, 1638][rng.usize(..4)],
            burst: [0, 0, 1, 3][rng.usize(..4)],
        },
    };
    TableConfig {
        speed,
        mode: 0,
        source_bits: 32,
        destination_bits: 32,
        size: 0,
        max: 0,
        gc_interval: [100, 1000][rng.usize(..2)],
        expire: [300, 1000, 60_000][rng.usize(..3)],
        rate_match: (rng.u8(..3) == 0).then(|| [1, 2][rng.usize(..2)]),
    }
}

/// Time to the next packet.
fn gap(rng: &mut Rng, pace: u64) -> u64 {
    match rng.u8(..40) {
        0 => rng.u64(..3 * SECOND),
        1..4 => rng.u64(..20 * pace),
        _ => rng.u64(..2 * pace),
    }
}

#[test]
fn what_a_kernel_says_is_never_excluded() {
    let seed = std::env::var("TAMIS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let (mut known, mut all) = (0, 0);
    for number in 0..400 {
        let mut rng = Rng::with_seed(seed * 1_000_003 + number);
        let config = draw(&mut rng);
        let mut kernels: Vec<Kernel> = (0..12).map(|_| Kernel::new(&mut rng, config)).collect();
        let mut buckets = Buckets::new(config);
        let pace = [100_000, 1_000_000, 10_000_000, 200_000_000][rng.usize(..4)];
        let mut doubts = rng.bool();
        let mut now = 10 * SECOND + rng.u64(..SECOND);
        for packet in 0..400 {
            now += gap(&mut rng, pace);
            let certain = !doubts || rng.u8(..8) > 0;
            doubts &= packet < 100;
            let len = rng.u64(20..1500);
            let (said, _) = buckets.ask(&config, Key::default(), &Visit { now, len, certain });
            for kernel in &mut kernels {
                let mut asked = kernel.clone();
                let answer = Outcome::from_bool(asked.ask(now, len));
                assert_eq!(
                    said.or(answer),
                    said,
                    "seed {seed}, run {number}, packet {packet}: {config:?}, {} Hz",
                    kernel.hz
                );
                if certain || rng.bool() {
                    *kernel = asked;
                }
            }
            known += u64::from(said.is_known());
            all += 1;
        }
    }
    // Most of the packets in doubt come faster than ticks.
    assert!(known * 2 > all, "{known} of {all} are known");
}

/// How many of packets that come all the time are known.
fn known(period: u64, burst: u64, pace: u64) -> f64 {
    let mut rng = Rng::with_seed(7);
    let speed = Speed::Packets { period, burst };
    let config = TableConfig { speed, rate_match: None, expire: 60_000, ..draw(&mut rng) };
    let mut buckets = Buckets::new(config);
    let (mut known, all) = (0, 20_000);
    for packet in 0..all {
        let visit = Visit { now: SECOND + packet * pace, len: 60, certain: true };
        known += u64::from(buckets.ask(&config, Key::default(), &visit).0.is_known());
    }
    known as f64 / all as f64
}

#[test]
fn doubt_does_not_add_up_in_a_flood() {
    let ms = 1_000_000;
    assert!(known(MICROS, 5, ms) > 0.95, "1/s: {}", known(MICROS, 5, ms));
    assert!(known(MICROS / 10, 5, ms) > 0.7, "10/s: {}", known(MICROS / 10, 5, ms));
    assert!(known(60 * MICROS, 1, ms) > 0.99, "1/min: {}", known(60 * MICROS, 1, ms));
}

#[test]
fn a_full_table_drops() {
    let mut config = draw(&mut Rng::with_seed(1));
    config.speed = Speed::Packets { period: MICROS, burst: 2 };
    (config.size, config.max, config.expire, config.gc_interval) = (2, 3, 10_000, 1000);
    config.rate_match = None;
    let mut buckets = Buckets::new(config);
    let mut ask = |last: u8, seconds: u64| {
        let mut source = [0; 16];
        source[0] = last;
        let visit = Visit { now: seconds * SECOND, len: 60, certain: true };
        buckets.ask(&config, Key { source, ..Key::default() }, &visit).0
    };
    assert_eq!([1, 2, 3].map(|last| ask(last, 10)), [Outcome::YES; 3]);
    assert_eq!(ask(4, 11), Outcome::HOT_DROP);
    assert_eq!(ask(1, 11), Outcome::YES, "one that is there");
    let open = ask(4, 20);
    assert!(open.may_hot_drop() && open.may_match(), "the others may be gone");
    assert_eq!(ask(5, 160), Outcome::YES);
}
