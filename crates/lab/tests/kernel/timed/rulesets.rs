//! Rules of FORWARD that only count, one for each of these matches or several.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use fastrand::Rng;
use rules::model::Family;

/// The group of the device that packets come by.
pub(super) const GROUP: u32 = 7;

/// The matches that a ruleset of a family has.
pub(super) fn names(family: Family) -> &'static [&'static str] {
    const ALL: [&str; 6] = ["cluster", "devgroup", "hashlimit", "quota", "time", "realm"];
    if family == Family::Ipv4 { &ALL } else { &ALL[..5] }
}

/// A table filter. `cluster` makes the kernel put fragments together, so only some have it.
pub(super) fn draw(rng: &mut Rng, family: Family, tracks: bool) -> String {
    let mut text = "*filter\n:FORWARD ACCEPT [0:0]\n".to_owned();
    let tables: Vec<String> = (0..3).map(|table| hashlimit(rng, family, table)).collect();
    for number in 0..16 {
        let rule = match number % 8 {
            0..3 => tables[number % 8].clone(),
            // Another rule of the same table.
            3 => above(&tables[0]),
            4 => quota(rng),
            5 => time(rng),
            6 => host(rng, family),
            _ if tracks => cluster(rng),
            _ => time(rng),
        };
        let before = if rng.u8(..3) == 0 { "-p udp " } else { "" };
        let _ = writeln!(text, "-A FORWARD {before}{rule}");
    }
    text + "COMMIT\n"
}

fn pick<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    all[rng.usize(..all.len())]
}

fn bang(rng: &mut Rng) -> &'static str {
    if rng.u8(..4) == 0 { "! " } else { "" }
}

fn hashlimit(rng: &mut Rng, family: Family, table: usize) -> String {
    let option = pick(rng, &["upto", "upto", "above"]);
    let is_bytes = rng.u8(..3) == 0;
    let is_matched = rng.u8(..4) == 0;
    let rate = match is_bytes {
        true => pick(rng, &["4kb/s", "64kb/s", "512kb/s", "2mb/s"]),
        false => pick(rng, &["1/sec", "5/sec", "20/sec", "100/sec", "10/min", "1/hour"]),
    };
    let mut text = format!("-m hashlimit --hashlimit-{option} {rate} --hashlimit-name t{table}");
    if !is_bytes {
        let _ = write!(text, " --hashlimit-burst {}", pick(rng, &[1, 2, 5, 20]));
    } else if rng.bool() {
        text += " --hashlimit-burst 4mb";
    }
    let mode =
        pick(rng, &["", "srcip", "dstip", "srcip,dstip", "srcip,dstport", "srcip,srcport,dstport"]);
    if !mode.is_empty() {
        let _ = write!(text, " --hashlimit-mode {mode}");
    }
    if rng.u8(..3) == 0 {
        let bits =
            if family == Family::Ipv6 { pick(rng, &[0, 64, 127]) } else { pick(rng, &[0, 24, 31]) };
        let _ = write!(text, " --hashlimit-srcmask {bits}");
    }
    if is_matched {
        text += " --hashlimit-rate-match";
        if rng.bool() {
            text += " --hashlimit-rate-interval 2";
        }
    }
    if rng.bool() {
        let _ = write!(text, " --hashlimit-htable-expire {}", pick(rng, &[200, 1000, 30_000]));
    }
    if rng.u8(..4) == 0 {
        let _ = write!(text, " --hashlimit-htable-gcinterval {}", pick(rng, &[100, 2000]));
    }
    if rng.u8(..30) == 0 {
        let size = pick(rng, &[1, 2, 4]);
        let _ = write!(text, " --hashlimit-htable-size {size} --hashlimit-htable-max {size}");
    }
    text
}

/// The same the other way round.
fn above(rule: &str) -> String {
    match rule.contains("--hashlimit-upto") {
        true => rule.replace("--hashlimit-upto", "--hashlimit-above"),
        false => rule.replace("--hashlimit-above", "--hashlimit-upto"),
    }
}

fn quota(rng: &mut Rng) -> String {
    let bang = bang(rng);
    format!("-m quota {bang}--quota {}", pick(rng, &[0, 500, 20_000, 100_000, 100_000_000]))
}

fn cluster(rng: &mut Rng) -> String {
    let nodes = pick(rng, &[1, 2, 3, 7, 32]);
    let (node, bang) = (rng.u32(1..=nodes), bang(rng));
    format!(
        "-m cluster --cluster-total-nodes {nodes} {bang}--cluster-local-node {node} --cluster-hash-seed {:#x}",
        rng.u32(..)
    )
}

/// What only the host knows.
fn host(rng: &mut Rng, family: Family) -> String {
    let bang = bang(rng);
    match rng.u8(..3) {
        0 => format!("-m devgroup {bang}--src-group {}", pick(rng, &[GROUP, 0, 3])),
        1 => format!("-m devgroup {bang}--dst-group {}", pick(rng, &["0", "0x7/0x8", "7"])),
        _ if family == Family::Ipv4 => {
            format!("-m realm {bang}--realm {}", pick(rng, &["0", "5", "0/1"]))
        }
        _ => format!("-m devgroup {bang}--src-group {GROUP}/0xff"),
    }
}

/// Around now, so that the answer changes while packets come.
fn time(rng: &mut Rng) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let of_day = |second: u64| {
        let second = second % 86_400;
        format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
    };
    let around = |rng: &mut Rng| now + rng.u64(..6) - 1;
    let mut text = "-m time".to_owned();
    if rng.bool() {
        let (start, stop) = (around(rng), around(rng));
        let _ = write!(text, " --timestart {} --timestop {}", of_day(start), of_day(stop));
        if start % 86_400 >= stop % 86_400 && rng.bool() {
            text += " --contiguous";
        }
    }
    let day = now / 86_400;
    if rng.u8(..3) == 0 {
        // The first day of all was a Thursday.
        let days = [day + 3 + rng.u64(..7), day + 3, day + 2].map(|day| day % 7 + 1);
        let _ = write!(text, " {}--weekdays {},{}", bang(rng), days[0], days[1 + rng.usize(..2)]);
    }
    if rng.u8(..3) == 0 {
        let (_, _, of_month) = civil(day);
        let _ = write!(text, " {}--monthdays {},{of_month}", bang(rng), rng.u64(1..32));
    }
    if rng.u8(..3) == 0 {
        let second = around(rng);
        let (year, month, day) = civil(second / 86_400);
        let which = pick(rng, &["start", "stop"]);
        let of_day = of_day(second);
        let _ = write!(text, " --date{which} {year}-{month:02}-{day:02}T{of_day}");
    }
    if text == "-m time" { text + " --timestart 00:00" } else { text }
}

/// Year, month and day of a day since the epoch (Howard Hinnant's `civil_from_days`).
fn civil(day: u64) -> (u64, u64, u64) {
    let shifted = day + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    (year, month, of_year - (153 * shifted_month + 2) / 5 + 1)
}
