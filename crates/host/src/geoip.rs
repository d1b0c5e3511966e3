//! [`Geoip`]: which addresses are a country's, by the files that `xt_geoip_build` of xtables-addons makes.
//!
//! Contract: no files are opened here. `DE.iv4` holds ranges of IPv4 addresses, `DE.iv6` of IPv6, each a first and a
//! last address in network byte order, sorted. A list that is not sorted is searched as the kernel searches it.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A country's code, in capitals.
pub type Country = [u8; 2];

/// First and last addresses.
type Ranges<T> = Box<[(T, T)]>;

/// Addresses by country.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Geoip {
    v4: BTreeMap<Country, Ranges<u32>>,
    v6: BTreeMap<Country, Ranges<u128>>,
}

impl Geoip {
    /// Reads a country's code: two letters or digits, in any case.
    #[must_use]
    pub fn country(text: &str) -> Option<Country> {
        let code: Country = text.as_bytes().try_into().ok()?;
        let is_code = code.iter().all(u8::is_ascii_alphanumeric);
        is_code.then(|| code.map(|byte| byte.to_ascii_uppercase()))
    }

    /// Takes what a file of this name holds; another kind of file is ignored.
    ///
    /// # Errors
    /// The file ends within a range: what was expected.
    pub fn take(&mut self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let Some((country, kind)) = name.split_once('.') else { return Ok(()) };
        let Some(country) = Self::country(country) else { return Ok(()) };
        match kind {
            "iv4" => {
                let ranges = pairs(bytes, u32::from_be_bytes);
                self.v4.insert(country, ranges.ok_or("expected ranges of 8 bytes each")?);
            }
            "iv6" => {
                let ranges = pairs(bytes, u128::from_be_bytes);
                self.v6.insert(country, ranges.ok_or("expected ranges of 32 bytes each")?);
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether it tells nothing of any country.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    /// Whether an address is a country's; `None` where the country has no file.
    #[must_use]
    pub fn holds(&self, country: Country, address: IpAddr) -> Option<bool> {
        match address {
            IpAddr::V4(address) => Some(within(self.v4.get(&country)?, address.to_bits())),
            IpAddr::V6(address) => Some(within(self.v6.get(&country)?, address.to_bits())),
        }
    }
}

/// Pairs of numbers of `N` bytes; `None` where the last one is cut.
fn pairs<const N: usize, T: Copy>(bytes: &[u8], read: impl Fn([u8; N]) -> T) -> Option<Ranges<T>> {
    let (numbers, rest) = bytes.as_chunks::<N>();
    let numbers: Vec<T> = numbers.iter().map(|bytes| read(*bytes)).collect();
    let (pairs, odd) = numbers.as_chunks::<2>();
    (rest.is_empty() && odd.is_empty()).then(|| pairs.iter().map(|[a, b]| (*a, *b)).collect())
}

/// The kernel's search (`geoip_bsearch4`, `geoip_bsearch6`).
fn within<T: Ord + Copy>(ranges: &[(T, T)], address: T) -> bool {
    let found = ranges.binary_search_by(|(first, last)| {
        if *first > address {
            Ordering::Greater
        } else if *last < address {
            Ordering::Less
        } else {
            Ordering::Equal
        }
    });
    found.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database() -> Geoip {
        let mut database = Geoip::default();
        let v4 = [[10, 0, 0, 0], [10, 0, 0, 255], [192, 0, 2, 7], [192, 0, 2, 7]].concat();
        let mut v6 = [0_u8; 32];
        v6[..4].copy_from_slice(&[0x20, 1, 0x0d, 0xb8]);
        v6[16..].copy_from_slice(&[0xff; 16]);
        v6[16..20].copy_from_slice(&[0x20, 1, 0x0d, 0xb8]);
        database.take("DE.iv4", &v4).unwrap();
        database.take("de.iv6", &v6).unwrap();
        database.take("A1.iv4", &[]).unwrap();
        database
    }

    #[test]
    fn ranges_have_both_ends() {
        let database = database();
        let holds = |code: &str, address: &str| {
            database.holds(Geoip::country(code).unwrap(), address.parse().unwrap())
        };
        for (address, expected) in [
            ("9.255.255.255", false),
            ("10.0.0.0", true),
            ("10.0.0.255", true),
            ("10.0.1.0", false),
            ("192.0.2.7", true),
            ("192.0.2.8", false),
            ("2001:db8::", true),
            ("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", true),
            ("2001:db9::", false),
        ] {
            assert_eq!(holds("de", address), Some(expected), "{address}");
        }
        assert_eq!(holds("A1", "10.0.0.1"), Some(false));
        assert_eq!(holds("A1", "2001:db8::"), None);
        assert_eq!(holds("FR", "10.0.0.1"), None);
    }

    #[test]
    fn files_of_other_kinds_are_passed_over_and_cut_ones_refused() {
        let mut database = Geoip::default();
        for name in ["DE", "DE.csv", "DEU.iv4", "é.iv4", "README.iv4"] {
            assert_eq!(database.take(name, &[1]), Ok(()), "{name}");
        }
        assert!(database.is_empty());
        for (name, len) in [("DE.iv4", 7), ("DE.iv4", 12), ("DE.iv6", 16)] {
            assert!(database.take(name, &vec![0; len]).is_err(), "{name} {len}");
        }
    }
}
