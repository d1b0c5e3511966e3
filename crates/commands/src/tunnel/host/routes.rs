//! Routes to allowed prefixes, without a loop: a route that outer datagrams would take themselves stands in a table of
//! its own, which they do not look into, as they have a mark.
//!
//! Two rules lead there, of which the first has the main table's routes but for default ones go before:
//! `table main suppress_prefixlength 0`, then `not fwmark MARK table MARK`.

use std::collections::HashSet;
use std::fs;

use ::tunnel::Prefix;
use anyhow::{Context, Result, bail};
use host::Network;
use live::config::tunnel::{Table, TunnelSettings};

use super::commands::{Command, Host, ip};
use crate::screen;

/// The rule for the main table, which ours stand before.
const MAIN: u32 = 32_766;

/// Value of a strict `rp_filter`: a packet is lost that arrived on another way than its answer would take.
const STRICT: &str = "1";

/// Adds them.
pub(super) fn add(tunnel: &TunnelSettings, host: &mut Host) -> Result<()> {
    for family in ["-4", "-6"] {
        let of_family = |prefix: &&Prefix| prefix.address().is_ipv6() == (family == "-6");
        let allowed = tunnel.peers.iter().flat_map(|peer| &peer.allowed);
        let prefixes: Vec<&Prefix> = allowed.filter(of_family).collect();
        match tunnel.table {
            Table::Off => {}
            Table::Number(table) => {
                prefixes
                    .iter()
                    .try_for_each(|prefix| route(tunnel, family, prefix, Some(table)))?;
            }
            Table::Auto => {
                let is_own_way = tunnel.own_ways();
                let (own, main): (Vec<&Prefix>, Vec<&Prefix>) =
                    prefixes.into_iter().partition(|prefix| is_own_way(prefix));
                let main = main.into_iter().filter(|prefix| !is_linked(tunnel, prefix));
                main.into_iter().try_for_each(|prefix| route(tunnel, family, prefix, None))?;
                if !own.is_empty() {
                    apart(tunnel, family, &own, host)?;
                }
            }
        }
    }
    Ok(())
}

/// Whether an address of the device has a link that leads there already.
fn is_linked(tunnel: &TunnelSettings, prefix: &Prefix) -> bool {
    let links = tunnel.addresses.iter().filter_map(|(address, bits)| {
        Network::parse(&format!("{address}/{bits}")).filter(|link| link.bits <= prefix.len())
    });
    links.into_iter().any(|link| link.holds(prefix.address()))
}

fn route(tunnel: &TunnelSettings, family: &str, prefix: &Prefix, table: Option<u32>) -> Result<()> {
    let to = format!("{}/{}", prefix.address(), prefix.len());
    let table = table.map(|table| table.to_string());
    let mut args = vec![family, "route", "add", &*to, "dev", &*tunnel.name];
    args.extend(table.iter().flat_map(|table| ["table", table]));
    ip(&args).map(drop)
}

/// Routes in a table of their own, with the number of the mark, and the rules that lead there.
fn apart(tunnel: &TunnelSettings, family: &str, own: &[&Prefix], host: &mut Host) -> Result<()> {
    let mark = tunnel.mark.context("expected mark = … beside such routes")?;
    let table = mark.to_string();
    // A table that nothing was ever put into is none, and an error.
    if ip(&[family, "route", "show", "table", &table]).is_ok_and(|routes| !routes.trim().is_empty())
    {
        bail!("table {table} has routes already: another mark = NUMBER makes it another table");
    }
    own.iter().try_for_each(|prefix| route(tunnel, family, prefix, Some(mark)))?;
    let first = free_places(&ip(&[family, "rule", "show"])?)?;
    let before = ["table", "main", "suppress_prefixlength", "0"];
    let ours = ["not", "fwmark", &table, "table", &table];
    for (place, rule) in [(first, &before[..]), (first + 1, &ours[..])] {
        let place = place.to_string();
        let command =
            |verb| Command::new("ip", &[&[family, "rule", verb, "pref", &place], rule].concat());
        host.step(&command("add"), command("del"))?;
    }
    if family == "-4" && is_strict() {
        screen::tell(
            "warning: net.ipv4.conf.*.rp_filter is 1, by which answers of peers may be lost: \
             sysctl -w net.ipv4.conf.all.rp_filter=2",
        );
    }
    Ok(())
}

/// The last two places before the main table's rule that no rule has, by what `ip rule show` prints.
fn free_places(rules: &str) -> Result<u32> {
    let places = rules.lines().filter_map(|line| line.split(':').next()?.trim().parse().ok());
    let taken: HashSet<u32> = places.collect();
    let is_free = |place: &u32| !taken.contains(place) && !taken.contains(&(place + 1));
    (1..MAIN - 1).rev().find(is_free).context("ip rule show: no place is left for rules")
}

fn is_strict() -> bool {
    let folders = fs::read_dir("/proc/sys/net/ipv4/conf").into_iter().flatten().flatten();
    let mut modes = folders.filter_map(|of| fs::read_to_string(of.path().join("rp_filter")).ok());
    modes.any(|mode| mode.trim() == STRICT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_take_the_last_places_that_are_free() {
        let usual = "0:\tfrom all lookup local\n32766:\tfrom all lookup main\n32767:\tx\n";
        assert_eq!(free_places(usual).unwrap(), 32_764);
        let taken = format!("{usual}32765:\tone\n32763:\tanother\n");
        assert_eq!(free_places(&taken).unwrap(), 32_761);
    }
}
