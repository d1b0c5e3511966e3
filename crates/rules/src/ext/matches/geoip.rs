//! `-m geoip` of xtables-addons: the country of an address, by the host's database.
//!
//! Source: xtables-addons(8); its `xt_geoip.c` and `libxt_geoip.c`.

use std::net::IpAddr;

use host::Geoip as Database;
use packet::{ipv4, ipv6};

use crate::error::What;
use crate::ext::{Args, Given, IP, Match, MatchKind, Opt, Printer, Support};
use crate::family::Family;
use crate::outcome::Outcome;
use crate::transit::Transit;

/// Countries of one rule.
const MOST: usize = 15;

const SOURCE: &str = "source-country";
const DESTINATION: &str = "destination-country";

pub(crate) static KIND: MatchKind = MatchKind {
    name: "geoip",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[
        Opt::value(SOURCE).alias(&["src-cc"]).invertible(),
        Opt::value(DESTINATION).alias(&["dst-cc"]).invertible(),
    ],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Geoip {
    /// Whose address is asked about: the sender's.
    by_source: bool,
    invert: bool,
    /// In the order in which they are given, each once.
    countries: Vec<[u8; 2]>,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.any_of(&[SOURCE, DESTINATION])?;
    args.one_of(&[SOURCE, DESTINATION])?;
    let given = args.get(SOURCE).map_or_else(|| args.required(DESTINATION), Ok)?;
    let countries = countries(given)?;
    Ok(Box::new(Geoip { by_source: given.name == SOURCE, invert: given.invert, countries }))
}

fn countries(given: &Given<'_>) -> Result<Vec<[u8; 2]>, What> {
    let mut countries = Vec::new();
    for (number, code) in given.text().split(',').enumerate() {
        match Database::country(code).filter(|_| number < MOST) {
            Some(code) if countries.contains(&code) => {}
            Some(code) => countries.push(code),
            None => {
                let most = format!("a comma list of at most {MOST} countries, each of two letters");
                return Err(given.expected(most));
            }
        }
    }
    Ok(countries)
}

impl Match for Geoip {
    fn print(&self, to: &mut Printer) {
        let codes = self.countries.iter().map(|code| String::from_utf8_lossy(code));
        let codes: Vec<_> = codes.collect();
        let name = if self.by_source { SOURCE } else { DESTINATION };
        to.option(self.invert, name, codes.join(","));
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let (Some(database), Some(address)) = (&transit.host.geoip, self.address(transit)) else {
            return Outcome::MAYBE;
        };
        let mut is_one = Some(false);
        for country in &self.countries {
            match database.holds(*country, address) {
                Some(true) => return Outcome::from_bool(!self.invert),
                Some(false) => {}
                None => is_one = None,
            }
        }
        is_one.map_or(Outcome::MAYBE, |is_one| Outcome::from_bool(is_one != self.invert))
    }
}

impl Geoip {
    fn address(&self, transit: &Transit<'_, '_>) -> Option<IpAddr> {
        Some(match (transit.family, self.by_source) {
            (Family::Ipv6, true) => transit.net::<16>(ipv6::SOURCE.start).known()?.into(),
            (Family::Ipv6, false) => transit.net::<16>(ipv6::DESTINATION.start).known()?.into(),
            (_, true) => transit.net::<4>(ipv4::SOURCE.start).known()?.into(),
            (_, false) => transit.net::<4>(ipv4::DESTINATION.start).known()?.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ext::kit::probe::{self, Frame, ipv4, ipv6};
    use host::Host;

    /// A database in which 10.0.0.1 is German and 10.0.0.2 French.
    fn host() -> Host {
        let mut database = Database::default();
        for (name, last) in [("DE.iv4", 1), ("FR.iv4", 2)] {
            database.take(name, &[10, 0, 0, last, 10, 0, 0, last]).unwrap();
        }
        Host { geoip: Some(Arc::new(database)), ..Host::default() }
    }

    #[test]
    fn an_address_is_that_of_one_of_the_countries() {
        use Outcome as O;
        let (host, packet) = (host(), ipv4(17, &[]));
        for (rule, expected) in [
            ("--src-cc DE", O::YES),
            ("--src-cc FR", O::NO),
            ("! --src-cc FR", O::YES),
            ("--src-cc fr,de", O::YES),
            ("--dst-cc FR", O::YES),
            ("! --destination-country FR,DE", O::NO),
            // Of a country without a file nothing is known.
            ("--src-cc IT", O::MAYBE),
            ("--src-cc IT,DE", O::YES),
            ("! --src-cc IT,FR", O::MAYBE),
        ] {
            let rule = format!("-m geoip {rule}");
            assert_eq!(Frame::ip(&packet).evaluate_in(&host, &rule), expected, "{rule}");
        }
        let rule = "-m geoip --src-cc DE";
        assert_eq!(Frame::ip(&packet).evaluate(rule), O::MAYBE);
        assert_eq!(Frame::ip(&ipv6(17, &[])).evaluate_in(&host, rule), O::MAYBE);
    }

    #[test]
    fn codes_print_in_capitals_each_once() {
        let print = |rule: &str| probe::print(Family::Ipv4, &format!("-m geoip {rule}"));
        let printed = print("! --src-cc de,FR,De").unwrap();
        assert_eq!(printed, "-m geoip ! --source-country DE,FR");
        for wrong in ["--src-cc D", "--src-cc DE,", "--src-cc D!", "--src-cc DE --dst-cc FR", ""] {
            assert!(print(wrong).is_err(), "{wrong}");
        }
        let many = ["DE"; 16].join(",");
        assert!(print(&format!("--src-cc {many}")).is_err());
    }
}
