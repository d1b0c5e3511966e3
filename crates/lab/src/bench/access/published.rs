//! Figures of both studies as they were published, to stand beside ours; what study 1 says of its drivers is
//! [`super::drivers`]. Where the published texts are at hand, a test
//! compares every number with them.

/// Milliseconds for 10 million packets of preset 1 with 10 threads in a task pool, by stripes (5.3.1).
pub const STUDY1_STRIPES: [(usize, f64); 6] =
    [(1, 6538.), (10, 4265.), (100, 3820.), (1_000, 3560.), (10_000, 3699.), (100_000, 3698.)];

/// Packets and addresses of the rows of study 2.
pub const STUDY2_SIZES: [(usize, usize); 9] = [
    (1_000, 100),
    (10_000, 100),
    (10_000, 1_000),
    (100_000, 100),
    (100_000, 1_000),
    (500_000, 100),
    (500_000, 1_000),
    (1_000_000, 100),
    (1_000_000, 1_000),
];

/// What study 2 did not run: its serial firewall with a million packets.
const NOT_RUN: f64 = f64::NAN;

/// A table of study 2 under one way to share work: milliseconds of both passes, in the order of [`STUDY2_SIZES`]; the
/// study's charts show the second pass.
#[derive(Debug, Clone, Copy)]
pub struct Study2System {
    /// The engine that stands for it here.
    pub table: &'static str,
    /// The way to share work that stands for its own here.
    pub way: &'static str,
    /// From its tables' being there.
    pub critical: [[f64; 9]; 2],
    /// From start to finish.
    pub overall: [[f64; 9]; 2],
}

impl Study2System {
    /// Critical and overall milliseconds of a pass, by packets and addresses; of what was run.
    pub fn pass(&self, pass: usize) -> impl Iterator<Item = ((usize, usize), (f64, f64))> + '_ {
        let times = self.critical[pass].into_iter().zip(self.overall[pass]);
        STUDY2_SIZES.into_iter().zip(times).filter(|(_, (critical, _))| critical.is_finite())
    }
}

/// Study 2, figures 9 to 11: means of 100 loops on a Core i7 with 8 logical cores.
pub const STUDY2: [Study2System; 7] = [
    Study2System {
        table: "matrix",
        way: "worker_pool",
        critical: [
            [2.51, 16.08, 13.96, 117.22, 124.11, 561.64, 564.59, 1109.18, 1155.05],
            [2.2, 16.1, 16.85, 116.68, 123.18, 562.18, 597.99, 1194.7, 1160.81],
        ],
        overall: [
            [2.84, 16.72, 14.61, 117.23, 124.74, 561.95, 564.92, 1109.51, 1155.85],
            [3., 16.27, 16.86, 116.85, 123.51, 562.82, 598.31, 1195.2, 1160.82],
        ],
    },
    Study2System {
        table: "concurrent_map",
        way: "worker_pool",
        critical: [
            [4.53, 17.99, 19.99, 124.89, 126.81, 591.29, 576.98, 1136.27, 1142.],
            [4.68, 19.01, 17.34, 122.84, 124.93, 597.29, 583.84, 1143.63, 1129.73],
        ],
        overall: [
            [4.53, 18.15, 20.15, 124.89, 126.81, 591.6, 576.98, 1136.42, 1142.16],
            [4.99, 19.01, 17.34, 122.84, 125.08, 597.29, 584., 1143.78, 1129.73],
        ],
    },
    Study2System {
        table: "striped_map",
        way: "worker_pool",
        critical: [
            [4.84, 21.63, 19.56, 127.96, 129.23, 593.63, 593.26, 1173.69, 1181.61],
            [5.58, 19.79, 20.17, 126.38, 127.93, 596.65, 596.27, 1165.17, 1186.03],
        ],
        overall: [
            [5.13, 21.89, 19.82, 128.12, 129.43, 593.77, 593.42, 1173.83, 1181.85],
            [5.79, 19.97, 20.34, 126.58, 128.16, 596.86, 596.51, 1165.42, 1186.26],
        ],
    },
    Study2System {
        table: "matrix",
        way: "stream",
        critical: [
            [4.24, 14.68, 15.13, 101.6, 103.7, 477.17, 476.75, 940.97, 935.89],
            [3.92, 16.53, 15.64, 100.48, 100.86, 471.82, 482.62, 942.97, 939.93],
        ],
        overall: [
            [4.39, 14.84, 15.76, 101.76, 104.03, 477.17, 477.22, 940.97, 936.05],
            [4.24, 16.84, 16.42, 100.63, 101.33, 471.98, 483.09, 943.28, 940.25],
        ],
    },
    Study2System {
        table: "concurrent_map",
        way: "stream",
        critical: [
            [5.29, 19.56, 22.25, 125.97, 107.62, 585.45, 526.74, 1156.24, 1197.71],
            [4.2, 19.34, 19.08, 103.51, 107.53, 582.28, 526.74, 1112.69, 1047.74],
        ],
        overall: [
            [5.45, 19.72, 22.4, 126.13, 107.62, 585.45, 526.74, 1156.4, 1197.81],
            [4.37, 19.34, 19.24, 103.51, 107.53, 582.28, 526.74, 1112.87, 1047.85],
        ],
    },
    Study2System {
        table: "striped_map",
        way: "stream",
        critical: [
            [5.24, 28.93, 28.05, 121.95, 117.74, 547.76, 541.97, 1012.35, 1045.13],
            [5.54, 26.1, 26.13, 120.25, 118.06, 525.48, 533.19, 1030.8, 1051.15],
        ],
        overall: [
            [5.52, 29.21, 28.37, 122.14, 117.92, 547.95, 542.16, 1012.55, 1045.29],
            [5.81, 26.35, 26.37, 120.5, 118.25, 525.68, 533.42, 1031.01, 1051.34],
        ],
    },
    Study2System {
        table: "serial",
        way: "serial",
        critical: [
            [7.24, 65.74, 61.14, 632.25, 664.02, 3216.68, 3299.43, NOT_RUN, NOT_RUN],
            [7.16, 65.36, 61.9, 643.89, 649.28, 3214.99, 3272.17, NOT_RUN, NOT_RUN],
        ],
        overall: [
            [7.33, 65.82, 61.23, 632.35, 664.1, 3216.75, 3299.53, NOT_RUN, NOT_RUN],
            [7.26, 65.42, 61.96, 643.96, 649.36, 3215.06, 3273.98, NOT_RUN, NOT_RUN],
        ],
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::drivers::{self, DRIVERS, Driver};
    use super::*;
    use crate::bench::published_text;

    type Times = (f64, f64);

    /// What the study calls a table.
    fn table(name: &str) -> Option<&'static str> {
        match name {
            "Custom Array" => Some("matrix"),
            "Builtin Hashmap" => Some("concurrent_map"),
            // One of the published tables spells it with a cedilla.
            "Custom Hashmap" | "Custom Hashmaç" => Some("striped_map"),
            "Serial" => Some("serial"),
            _ => None,
        }
    }

    /// Packets, addresses, critical and overall time of a row, with its table. What was not run has no times.
    fn row(line: &str) -> Option<(&'static str, (usize, usize), Option<Times>)> {
        let columns: Vec<&str> = line.split('\t').collect();
        let [_, name, packets, addresses, times @ ..] = &columns[..] else { return None };
        let count = |text: &str| text.replace(',', "").parse().ok();
        let time = |at: usize| times.get(at)?.trim().parse().ok();
        let times = time(0).zip(time(1));
        Some((table(name)?, (count(packets)?, count(addresses)?), times))
    }

    #[test]
    fn every_number_of_study_2_is_here() {
        let Some(text) = published_text("001") else { return };
        let ways = ["worker_pool", "stream", "serial"];
        let tables = text.split("Packet Generation\t").skip(1).zip(ways);
        let mut published: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (rows, way) in tables {
            for (table, size, times) in rows.lines().filter_map(row) {
                published.entry((table, way, size)).or_default().push(times);
            }
        }
        assert_eq!(
            published.values().map(Vec::len).sum::<usize>(),
            126,
            "rows of the published tables"
        );
        for ((table, way, size), passes) in published {
            let system = STUDY2.iter().find(|one| (one.table, one.way) == (table, way)).unwrap();
            let ours = [0, 1]
                .map(|pass| system.pass(pass).find(|(of, _)| *of == size).map(|(_, times)| times));
            assert_eq!(ours.as_slice(), passes, "{table} {way} {size:?}");
        }
    }

    #[test]
    fn every_number_of_study_1_is_here() {
        let Some(text) = published_text("000") else { return };
        let mut rows = 0;
        for line in text.lines().filter(|line| line.starts_with("| `")) {
            let mut cells = line.split('|').map(str::trim).filter(|cell| !cell.is_empty());
            let driver = cells.next().map(|name| name.trim_matches('`')).unwrap_or_default();
            let values: Vec<f64> =
                cells.map(|cell| cell.replace(',', "").parse().unwrap()).collect();
            let (engine, model) = drivers::named(driver).unwrap();
            if model == "task_pool" {
                assert_eq!(STUDY1_STRIPES.map(|(_, millis)| millis).as_slice(), values, "{driver}");
            } else {
                let is_it = |one: &&Driver| (one.engine, one.model) == (engine, model);
                let ours = DRIVERS.iter().find(is_it).unwrap().speed_ups[2];
                // The text rounds some and cuts others.
                let near = ours.iter().zip(&values).all(|(ours, text)| (ours - text).abs() < 0.01);
                assert!(near && values.len() == 8, "{driver}: {ours:?}, {values:?}");
            }
            rows += 1;
        }
        assert_eq!(rows, 8, "rows of the published tables, some of them in two");
    }
}
