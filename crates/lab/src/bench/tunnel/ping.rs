//! ping(8): how long packets are on their way there and back.
//!
//! Source: iputils' `ping -n`: a line with `time=MILLISECONDS ms` for each answer.

use std::io;
use std::net::Ipv4Addr;
use std::process::{Child, Stdio};
use std::time::Duration;

use super::namespace::program;
use super::site::Host;

/// Between two requests.
pub(super) const INTERVAL: Duration = Duration::from_millis(10);

/// One that is running.
pub(super) struct Ping {
    child: Child,
    sent: usize,
}

/// Answers of a run, or of several.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Times {
    /// Milliseconds, the shortest first.
    millis: Vec<f64>,
    /// Requests without an answer.
    pub(super) lost: usize,
}

impl Ping {
    /// Sends a request in each interval for so long.
    pub(super) fn start(
        host: &Host,
        to: Ipv4Addr,
        interval: Duration,
        seconds: f64,
    ) -> io::Result<Self> {
        let sent = (seconds / interval.as_secs_f64()).ceil().max(1.0) as usize;
        let mut ping = program("ping");
        let interval = interval.as_secs_f64().to_string();
        ping.args(["-n", "-i", &interval, "-c", &sent.to_string(), "-W", "2", &to.to_string()]);
        ping.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        Ok(Self { child: host.place.spawn(ping)?, sent })
    }

    /// Waits for its end.
    pub(super) fn finish(self) -> io::Result<Times> {
        let output = self.child.wait_with_output()?;
        Ok(Times::read(&String::from_utf8_lossy(&output.stdout), self.sent))
    }
}

impl Times {
    fn read(text: &str, sent: usize) -> Self {
        let time = |line: &str| line.split_once("time=")?.1.split(' ').next()?.parse().ok();
        let mut millis: Vec<f64> = text.lines().filter_map(time).collect();
        millis.sort_by(f64::total_cmp);
        let lost = sent.saturating_sub(millis.len());
        Self { millis, lost }
    }

    /// All of them.
    pub(super) fn of(runs: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Self::default();
        for run in runs {
            all.millis.extend(run.millis);
            all.lost += run.lost;
        }
        all.millis.sort_by(f64::total_cmp);
        all
    }

    /// So many of a hundred answers took no longer, in milliseconds.
    ///
    /// # Errors
    /// There is no answer.
    pub(super) fn percentile(&self, percent: f64) -> io::Result<f64> {
        let place = (percent / 100.0 * self.millis.len() as f64).ceil() as usize;
        let at = self.millis.get(place.saturating_sub(1)).copied();
        at.ok_or_else(|| io::Error::other("no answer to any ping"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_and_missing_ones_are_lost() {
        let text = "PING 10.77.0.2 (10.77.0.2) 56(84) bytes of data.\n\
            64 bytes from 10.77.0.2: icmp_seq=1 ttl=64 time=0.400 ms\n\
            64 bytes from 10.77.0.2: icmp_seq=3 ttl=64 time=12.5 ms\n\
            64 bytes from 10.77.0.2: icmp_seq=2 ttl=64 time=1.05 ms\n\n\
            --- 10.77.0.2 ping statistics ---\n";
        let times = Times::read(text, 5);
        assert_eq!(times, Times { millis: vec![0.4, 1.05, 12.5], lost: 2 });
        let at = |percent| times.percentile(percent).unwrap();
        assert_eq!(
            [1.0, 33.0, 50.0, 67.0, 99.0, 100.0].map(at),
            [0.4, 0.4, 1.05, 12.5, 12.5, 12.5]
        );
        let both = Times::of([times.clone(), Times::read("time=0.1 ms", 1)]);
        assert_eq!(both, Times { millis: vec![0.1, 0.4, 1.05, 12.5], lost: 2 });
        assert!(Times::read("", 3).percentile(50.0).is_err());
    }
}
