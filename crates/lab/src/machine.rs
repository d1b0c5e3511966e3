//! The machine that figures were measured on.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// Its processor, how many cores it lends, its kernel.
#[must_use]
pub fn describe() -> Value {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    json!({
        "cpu": model.map_or("unknown", |(_, name)| name.trim()),
        "cores": cores,
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
    })
}

/// The day, as `2026-11-21`.
#[must_use]
pub fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Days to civil date, after Howard Hinnant's algorithm.
    let days = (since.as_secs() / 86_400) as i64 + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}
