//! `tamis ctl drops` and `tamis ctl talkers`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use live::Request;
use live::answers::{Drops, Service, Talkers};
use packet::visible;

use super::control::{SocketArgs, once};

/// What may be asked about frames.
#[derive(Debug, Subcommand)]
pub(crate) enum SeenCommand {
    /// The last frames that were dropped
    Drops,
    /// Who talked most in the last second, by source and by service
    Talkers,
}

impl SeenCommand {
    /// Asks, and prints the answer.
    pub(super) fn run(&self, args: &SocketArgs) -> Result<ExitCode> {
        match self {
            Self::Drops => once(args, &Request::Drops {}, drops),
            Self::Talkers => once(args, &Request::Talkers {}, talkers),
        }
    }
}

fn drops(answer: &Drops) -> String {
    let lines: String = answer.drops.iter().map(|frame| format!("{frame}\n")).collect();
    match lines.is_empty() {
        true => "nothing was dropped\n".to_owned(),
        false => lines + "next: tamis watch, for frames as they are dropped\n",
    }
}

/// Frames and bits a second of each, the most frames first.
fn talkers(answer: &Talkers) -> String {
    let Talkers { seconds, every, sources, services, .. } = answer;
    if *seconds <= 0.0 {
        return "counting begins: ask again in a second\n".to_owned();
    }
    let title = |title| format!("{title:<40}{:>12}{:>14}\n", "FRAMES/s", "bit/s");
    let row = |name: &str, frames: u64, bytes: u64| {
        let [frames, bits] = [frames as f64, 8.0 * bytes as f64].map(|sum| sum / seconds);
        format!("{:<40}{frames:>12.0}{bits:>14.0}\n", visible::word(name))
    };
    let mut text = title("SOURCE");
    text.extend(sources.iter().map(|source| row(&source.address, source.frames, source.bytes)));
    text += &title("SERVICE");
    text.extend(services.iter().map(|Service { protocol, port, frames, bytes }| match port {
        Some(port) => row(&format!("{protocol} {port}"), *frames, *bytes),
        None => row(protocol, *frames, *bytes),
    }));
    match every {
        2.. => text + &format!("estimated: one frame in {every} was looked at\n"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use live::answers;
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
        let text = talkers(&answers::read(answer).unwrap());
        let words: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[1], ["10.9.0.7", "1055", "4660000"]);
        assert_eq!(words[3], ["udp", "443", "10", "40"]);
        assert_eq!(words[4], ["icmp", "1", "400"]);
        assert!(text.ends_with("estimated: one frame in 4 was looked at\n"), "{text}");
        assert_eq!(talkers(&Talkers::default()), "counting begins: ask again in a second\n");
    }
}
