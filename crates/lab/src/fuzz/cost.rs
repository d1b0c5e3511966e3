//! Time that readers take by the bytes that they are given: an input is made long, and longer, and what the longer one costs
//! may grow with its length alone.
//!
//! Time is that of this thread on its processor, so others on the machine do not count, and an input is refused only if
//! it costs several times what any costs that is read line by line, and that grew three times as fast as its length, twice
//! in a row. What it tells is a reader that looks at all before for each line, name or option.

use std::time::Duration;

use conntrack::Listing;
use dataplane::bans_text;
use host::Host;
use live::Request;
use pktio::{Burst, CaptureReader, Port};
use rules::ipset::Sets;
use rules::model::Family;
use rules::save::{LoadOptions, load, print_ruleset};

/// Most bytes that one input may unpack to: gzip and zstd are good at zeros.
pub(super) const MAX_UNPACKED: usize = 16 << 20;

/// Bytes that an input is made, and how many times as many then.
const LONG: usize = 32 << 10;
const TIMES: u32 = 8;
/// What a byte may cost in any case, and whatever the shorter input costs, in nanoseconds.
const CHEAP: u64 = 1_000;
const MOST: u64 = 40_000;

/// What reads a text, or bytes: how many bytes they came to, if they are more than they are.
type Reader = fn(&[u8]) -> usize;

const READERS: [Reader; 7] = [rules, capture, request, bans, sets, host, connections];

/// A byte that names the reader, then up to three parts with `%%` between them: what comes once, what is repeated, and what
/// ends it. In what is repeated, `@` is the number of its turn, `~` the lowest byte of that as a number, `^` the next one.
pub(super) fn cost(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let read = READERS[usize::from(*kind) % READERS.len()];
    let (long, longer) = (lengthened(data, LONG), lengthened(data, LONG * TIMES as usize));
    let mut is_much = true;
    for _ in 0..2 {
        let (time, unpacked) = timed(|| read(&longer));
        let each =
            |nanos| Duration::from_nanos(nanos * longer.len().max(unpacked).max(LONG) as u64);
        assert!(time <= each(MOST), "{time:?} for {} bytes", longer.len());
        is_much &= time > each(CHEAP) && time > timed(|| read(&long)).0 * TIMES * 3;
        if !is_much {
            return;
        }
    }
    panic!("{} times the bytes cost more than {} times the time", TIMES, TIMES * 3);
}

fn lengthened(data: &[u8], least: usize) -> Vec<u8> {
    let (head, rest) = cut(data);
    let (unit, tail) = cut(rest);
    let mut long = head.to_vec();
    let mut turn = 0;
    while !unit.is_empty() && long.len() < least {
        for byte in unit {
            match byte {
                b'@' => long.extend(turn.to_string().bytes()),
                b'~' => long.extend((turn & 0xff).to_string().bytes()),
                b'^' => long.extend((turn >> 8 & 0xff).to_string().bytes()),
                byte => long.push(*byte),
            }
        }
        turn += 1;
    }
    long.extend(tail);
    long
}

/// What is before the first mark, and after it.
fn cut(data: &[u8]) -> (&[u8], &[u8]) {
    let at = data.windows(2).position(|window| window == b"%%");
    at.map_or((data, &[]), |at| (&data[..at], &data[at + 2..]))
}

/// The time that this thread had a processor for it.
#[cfg(target_os = "linux")]
fn timed<T>(run: impl FnOnce() -> T) -> (Duration, T) {
    use rustix::time::{ClockId, clock_gettime};
    let now = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    };
    let before = now();
    let made = run();
    (now() - before, made)
}

/// Nothing tells it here.
#[cfg(not(target_os = "linux"))]
fn timed<T>(run: impl FnOnce() -> T) -> (Duration, T) {
    (Duration::ZERO, run())
}

fn text(data: &[u8]) -> &str {
    std::str::from_utf8(data).unwrap_or_default()
}

fn rules(data: &[u8]) -> usize {
    for family in [None, Some(Family::Ipv6), Some(Family::Arp), Some(Family::Bridge)] {
        if let Ok(loaded) = load(text(data), &LoadOptions { family, ..LoadOptions::default() }) {
            let _ = print_ruleset(&loaded.ruleset, false, |_, _, _| Default::default());
        }
    }
    0
}

fn capture(data: &[u8]) -> usize {
    let input = std::io::Cursor::new(data.to_vec());
    let Ok(mut reader) = CaptureReader::new("fuzz", input) else { return 0 };
    let (mut burst, mut unpacked) = (Burst::new(), 0);
    while let Ok(1..) = reader.rx_burst(&mut burst) {
        unpacked += burst.iter().map(|frame| frame.bytes.len() + 1).sum::<usize>();
        if unpacked > MAX_UNPACKED {
            break;
        }
    }
    unpacked
}

fn request(data: &[u8]) -> usize {
    let _ = serde_json::from_slice::<Request>(data);
    0
}

fn bans(data: &[u8]) -> usize {
    let _ = bans_text::parse("fuzz", text(data));
    0
}

fn sets(data: &[u8]) -> usize {
    let _ = Sets::parse(text(data));
    0
}

fn host(data: &[u8]) -> usize {
    let (name, rest) = text(data).split_once('\n').unwrap_or_default();
    let _ = Host::read(|file| (file == name).then(|| rest.to_owned()));
    0
}

fn connections(data: &[u8]) -> usize {
    let _ = Listing::parse(text(data));
    0
}
