//! A rule's own tests as text and as edits of a packet.

use std::collections::BTreeSet;

use rules::model::{Family, Header, IfaceTest, MaskedAddr};

use crate::generate::Piece;

/// The tests, in the order in which they are printed.
pub(super) fn pieces(header: &Header, family: Family, into: &mut Vec<Piece>) {
    into.extend(header.source().map(|test| address("-s", test, family)));
    into.extend(header.destination().map(|test| address("-d", test, family)));
    into.extend(header.input().map(|test| interface("-i", test)));
    into.extend(header.output().map(|test| interface("-o", test)));
    into.extend(header.protocol().map(|test| {
        let (number, invert) = (test.number, test.invert);
        Piece::new(format!("{}-p {number}", bang(invert)), move |p| {
            if !invert && number != 0 {
                p.protocol = number;
            }
        })
    }));
    into.extend(header.fragment().map(|invert| {
        Piece::new(format!("{}-f", bang(invert)), move |p| {
            p.fragment = if invert { 0 } else { 0x2001 };
        })
    }));
}

/// Adds the devices that the tests name: those coming in first, those going out second.
pub(super) fn devices(header: &Header, into: &mut [BTreeSet<String>; 2]) {
    for (test, names) in [header.input(), header.output()].into_iter().zip(into) {
        let Some(test) = test else { continue };
        let end = if test.prefix { "0" } else { "" };
        names.insert(format!("{}{end}", test.name));
    }
}

fn bang(invert: bool) -> &'static str {
    if invert { "! " } else { "" }
}

fn interface(option: &str, test: &IfaceTest) -> Piece {
    let plus = if test.prefix { "+" } else { "" };
    Piece::plain(format!("{}{option} {}{plus}", bang(test.invert), test.name))
}

/// The bits that the mask leaves open stay as they were drawn.
fn address(option: &'static str, test: MaskedAddr, family: Family) -> Piece {
    let text = format!("{}{option} {}", bang(test.invert), test.text(family));
    Piece::new(text, move |p| {
        if test.invert {
            return;
        }
        let place = if option == "-s" { &mut p.source } else { &mut p.destination };
        for ((byte, addr), mask) in place.iter_mut().zip(test.addr).zip(test.mask) {
            *byte = addr | *byte & !mask;
        }
    })
}
