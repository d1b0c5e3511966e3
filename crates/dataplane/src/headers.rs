//! [`find_headers`]: the headers of a frame as its handler is to see them.
//!
//! Contract: headers depend on the bytes, the program and the frame's origin, and on nothing that packets leave behind.
//! So a worker finds the headers of a burst first, prefetches by them, and gives each frame's to the handler
//! ([`Arrival::headers`](crate::Arrival)), which finds them itself where it is given none. A debug build compares given
//! headers with the ones that it finds.

use packet::{Checksums, Headers, Link, parse_frame, parse_into};
use rules::model::Family;

use crate::arrival::Origin;
use crate::config::Config;
use crate::hooked;
use crate::program::Program;

/// Finds the headers of a frame of which `bytes` were captured, `wire_len` bytes long on the wire.
#[inline]
#[must_use]
pub fn find_headers(
    program: &Program,
    bytes: &[u8],
    link: Link,
    wire_len: usize,
    origin: Origin,
) -> Headers {
    let mut headers = Headers::default();
    find_headers_into(&mut headers, program, bytes, link, wire_len, origin);
    headers
}

/// Finds headers like [`find_headers`], and writes them where they are to stay.
#[inline]
pub fn find_headers_into(
    headers: &mut Headers,
    program: &Program,
    bytes: &[u8],
    link: Link,
    wire_len: usize,
    origin: Origin,
) {
    if program.bridges() && link.is_ethernet() {
        let frame = parse_frame(bytes, wire_len);
        if link != Link::Wire {
            *headers = frame;
            return;
        }
        parse_into(headers, link, bytes, wire_len, checksums_of(program.config(), origin));
        if program.family_for(headers, link, true) == Some(Family::Bridge) {
            *headers = frame;
        }
        return;
    }
    let origin = match link {
        Link::Nflog => hooked::origin(bytes, link).unwrap_or(origin),
        _ => origin,
    };
    parse_into(headers, link, bytes, wire_len, checksums_of(program.config(), origin));
}

/// How the IPv4 header checksums of a frame of this origin are checked.
#[inline]
pub(crate) fn checksums_of(config: &Config, origin: Origin) -> Checksums {
    match config.checksums {
        Checksums::Arrivals if origin == Origin::Wire => Checksums::Verify,
        checksums => checksums,
    }
}
