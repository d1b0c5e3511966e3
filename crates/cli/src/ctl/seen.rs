//! `tamis ctl drops` and `tamis ctl talkers`.

use std::fmt::Write;

use clap::Subcommand;
use dataplane::run::{Request, told_text};
use packet::visible;
use serde_json::Value;

/// What may be asked about frames.
#[derive(Debug, Subcommand)]
pub(crate) enum SeenCommand {
    /// The last frames that were dropped
    Drops,
    /// Who talked most in the last second, by source and by service
    Talkers,
}

impl SeenCommand {
    pub(super) fn request(&self) -> Request {
        match self {
            Self::Drops => Request::Drops {},
            Self::Talkers => Request::Talkers {},
        }
    }

    /// The answer, for a screen.
    pub(super) fn text(&self, answer: &Value) -> String {
        match self {
            Self::Drops => drops(answer),
            Self::Talkers => talkers(answer),
        }
    }
}

fn drops(answer: &Value) -> String {
    let drops = answer["drops"].as_array().into_iter().flatten();
    let lines: String = drops.map(|told| told_text(told) + "\n").collect();
    match lines.is_empty() {
        true => "nothing was dropped\n".to_owned(),
        false => lines + "next: tamis watch, for frames as they are dropped\n",
    }
}

/// Frames and bits a second of each, the most frames first.
fn talkers(answer: &Value) -> String {
    let Some(seconds) = answer["seconds"].as_f64().filter(|seconds| *seconds > 0.0) else {
        return "counting begins: ask again in a second\n".to_owned();
    };
    let mut text = String::new();
    for (title, of) in [("SOURCE", "sources"), ("SERVICE", "services")] {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{title:<40}{:>12}{:>14}", "FRAMES/s", "bit/s");
        for talker in answer[of].as_array().into_iter().flatten() {
            let rate = |key: &str| talker[key].as_f64().unwrap_or(0.0) / seconds;
            let (frames, bits) = (rate("frames"), 8.0 * rate("bytes"));
            let _ = writeln!(text, "{:<40}{frames:>12.0}{bits:>14.0}", talker_name(talker));
        }
    }
    match answer["every"].as_u64() {
        Some(every @ 2..) => text + &format!("estimated: one frame in {every} was looked at\n"),
        _ => text,
    }
}

fn talker_name(talker: &Value) -> String {
    let word = |key: &str| visible::word(talker[key].as_str().unwrap_or_default()).into_owned();
    match (talker["address"].is_string(), talker["port"].as_u64()) {
        (true, _) => word("address"),
        (false, Some(port)) => format!("{} {port}", word("protocol")),
        (false, None) => word("protocol"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn talkers_are_told_by_the_second_and_estimates_as_such() {
        let answer = json!({
            "seconds": 2.0, "every": 4,
            "sources": [{ "address": "10.9.0.7", "frames": 2110, "bytes": 1_165_000 }],
            "services": [
                { "protocol": "udp", "port": 443, "frames": 20, "bytes": 10 },
                { "protocol": "icmp", "port": null, "frames": 2, "bytes": 100 },
            ],
        });
        let text = SeenCommand::Talkers.text(&answer);
        let words: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[1], ["10.9.0.7", "1055", "4660000"]);
        assert_eq!(words[3], ["udp", "443", "10", "40"]);
        assert_eq!(words[4], ["icmp", "1", "400"]);
        assert!(text.ends_with("estimated: one frame in 4 was looked at\n"), "{text}");
        let first = SeenCommand::Talkers.text(&json!({ "seconds": 0.0 }));
        assert_eq!(first, "counting begins: ask again in a second\n");
    }
}
