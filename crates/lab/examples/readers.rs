//! Prints what readers keep of their rate while rules are published: `readers [READERS] [UPDATES] [PAIRS]`.

use std::time::Duration;

use dataplane::publish::Kind;
use lab::bench::rules::readers::{Load, measure, median};

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|word| word.parse().ok());
    let mut next = |default| numbers.next().unwrap_or(default);
    let (readers, updates, pairs) = (next(1), next(1000) as u32, next(41));
    for counters in [Kind::None, Kind::Local, Kind::Shared, Kind::Elsewhere] {
        let slice = Duration::from_millis(100);
        match measure(Load { readers, updates, pairs, slice, counters }) {
            Ok(rates) => println!(
                "{:10} quiet {:9.0} packets/s, with {:5.0} updates/s {:9.0}, kept {:.3}, \
                 of its time on a processor {:.3}, \
                 commit {:.1} us",
                counters.name(),
                median(rates.quiet.iter().copied()),
                median(rates.updates.iter().copied()),
                median(rates.updated.iter().copied()),
                rates.kept(),
                rates.kept_on_cpu(),
                median(rates.commits.iter().copied()) * 1e6,
            ),
            Err(error) => println!("{:10} {error}", counters.name()),
        }
    }
}
