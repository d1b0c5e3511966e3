//! Publishing, on the real thing: histories of threads, counters against plain sums, limits.

mod counters;
mod history;
mod limits;
mod memory;
mod model;
mod programs;
mod reload;
mod swaps;

use std::sync::atomic::{AtomicBool, Ordering};

use dataplane::publish::{BurstGuard, Published};
use dataplane::{Config, Program};
use host::Host;
use packet::{Checksums, Link, Packet};
use rules::Transit;
use rules::eval::{Alive, Verdict};
use rules::model::{Family, Hook, Ruleset};
use rules::revision::Revision;
use rules::save::{LoadOptions, load};

/// Bytes of every packet.
pub(crate) const BYTES: u64 = 40;

/// Stops the other threads, also when a thread panics.
pub(crate) struct Stops<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub(crate) fn ruleset(text: &str) -> Ruleset {
    let options = LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() };
    load(text, &options).unwrap_or_else(|error| panic!("{error}\n{text}")).ruleset
}

pub(crate) fn published(text: &str) -> Published {
    Published::new([&ruleset(text)], Config::default())
}

/// The one family's rules of a program.
pub(crate) fn rules(program: &Program) -> &Revision {
    program.revision(Family::Ipv4).unwrap()
}

/// Walks a packet through PREROUTING of mangle: its only verdict and its mark.
pub(crate) fn walk(burst: &mut BurstGuard<'_>) -> (Option<Verdict>, u32) {
    let mut bytes = [0; BYTES as usize];
    bytes[0] = 0x45;
    bytes[3] = BYTES as u8;
    (bytes[8], bytes[9]) = (64, 17);
    bytes[12..16].copy_from_slice(&[10, 0, 0, 1]);
    bytes[16..20].copy_from_slice(&[10, 0, 0, 2]);
    let host = Host::default();
    let mut packet = Packet::parse(&mut bytes, BYTES as usize, Link::Raw, Checksums::Ignore);
    let mut transit = Transit::new(&mut packet, Family::Ipv4, Hook::Prerouting, &host);
    let table = rules(burst.program()).table("mangle").unwrap_or(usize::MAX);
    let verdicts = burst.walk(table, &mut transit, Alive::Certain);
    (verdicts.only().map(|(verdict, _)| verdict), transit.mark.value)
}

/// Commits one transaction of these lines in mangle.
pub(crate) fn change(published: &Published, lines: &str) -> u64 {
    let number = published.program().number();
    let text = format!("*mangle\n{lines}\nCOMMIT\n");
    published
        .commit_text(number, Family::Ipv4, &text)
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}
