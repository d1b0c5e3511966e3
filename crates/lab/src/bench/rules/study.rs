//! The study's last table, with what stands for each of its rows here.
//!
//! Source: "Xtables2: Love for blobs" (Engelhardt, NFWS 2010), the last two slides; round-trip times of a ping over
//! 100,000 matching rules, in milliseconds. Each round trip walks the rules twice.

use super::count::Counting;
use crate::layouts::Kind;

/// One row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Driver {
    /// As the study names it.
    pub(super) name: &'static str,
    /// On its Athlon of 2003.
    pub(super) k7: f64,
    /// On its Core i7 of 2009.
    pub(super) i7: Option<f64>,
    /// In a virtual machine of one core on that.
    pub(super) vm: Option<f64>,
    /// What stands for it here; nft is the kernel's own.
    pub(super) here: Option<(Kind, Counting)>,
}

const fn driver(
    name: &'static str,
    k7: f64,
    [i7, vm]: [Option<f64>; 2],
    kind: Kind,
    counting: Counting,
) -> Driver {
    Driver { name, k7, i7, vm, here: Some((kind, counting)) }
}

/// All rows, the first of which the others are compared with.
pub(super) const DRIVERS: [Driver; 8] = [
    driver("xt1 +2s", 40.447, [Some(2.83), Some(3.08)], Kind::TableBlob, Counting::Local),
    driver("xt1 +1Q", 58.882, [Some(5.18), Some(11.47)], Kind::TableBlob, Counting::Locked),
    driver("xt1 +2Q", 77.373, [Some(11.50), Some(21.00)], Kind::TableBlob, Counting::LockedTwice),
    driver("xt2-proto3 +2Q", 113.424, [None, Some(24.47)], Kind::Linked, Counting::LockedTwice),
    driver("xt2-proto4 +2Q", 74.135, [None, Some(21.79)], Kind::PackedChain, Counting::LockedTwice),
    driver("xt2-proto4 +2s", 44.254, [None, None], Kind::PackedChain, Counting::Local),
    driver("the same, +1 allocation", 50.733, [None, None], Kind::PackedChain, Counting::Allocated),
    Driver { name: "nft +2s", k7: 57.8, i7: None, vm: None, here: None },
];

/// Bytes a rule of the study's 100,202 rules: as a blob of 20 MB, and as lists of small allocations, 53 MB with what the
/// allocator added.
pub(super) const MEMORY: [(Kind, f64); 2] =
    [(Kind::TableBlob, 20e6 / RULES), (Kind::Linked, 53e6 / RULES)];
const RULES: f64 = 100_202.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::published_text;

    /// A row of the last slide's table: its name without spaces, and its three columns.
    fn row(line: &str) -> Option<(String, [Option<f64>; 3])> {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        let columns = words.split_off(words.len().checked_sub(3)?);
        let [k7, i7, vm] = columns[..] else { return None };
        let number = |word: &str| word.parse().ok();
        let is_column = |word: &str| word == "n/a" || number(word).is_some();
        let name = words.concat();
        ([k7, i7, vm].into_iter().all(is_column) && name.starts_with("xt"))
            .then(|| (name, [k7, i7, vm].map(number)))
    }

    #[test]
    fn the_memory_is_that_of_its_slides() {
        let Some(text) = published_text("002") else { return };
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for said in ["100,202 rules", "20 MB in packed form", "53$ MB"] {
            assert!(words.contains(said), "{said}");
        }
    }

    #[test]
    fn every_number_of_the_last_slide_is_here() {
        let Some(text) = published_text("002") else { return };
        let rows: Vec<_> = text.lines().filter_map(row).collect();
        assert_eq!(rows.len(), 12, "six rows, shown twice: {rows:?}");
        for (name, columns) in rows {
            let driver = DRIVERS.iter().find(|driver| driver.name.replace(' ', "") == name);
            let found = driver.map(|driver| [Some(driver.k7), driver.i7, driver.vm]);
            assert_eq!(found, Some(columns), "{name}");
        }
        for (what, line) in [("nft +2s", "nft +2s 57.8"), ("the same", "50.733 ms (= +15%)")] {
            let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.lines().any(|of| words(of).contains(line)), "{what}");
            let driver = DRIVERS.iter().find(|driver| driver.name.starts_with(what));
            assert!(driver.is_some_and(|driver| line.contains(&driver.k7.to_string())), "{what}");
        }
    }
}
