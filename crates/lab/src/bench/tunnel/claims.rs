//! What the overlay is held to, and what the study says of its own, each beside the figures: a row for each, with its
//! answer.
//!
//! Contract: a claim whose figures are not there leaves its row out. Claims about several figures at once take the worst
//! of them.

use std::cmp::Ordering;

use serde_json::Value;

use super::rounds::OURS;
use crate::bench::document::Row;

/// The name of the rows.
const NAME: &str = "tunnel.claim";
/// The study's starting point, and its own scheme.
const CONVENTIONAL: &str = "conventional";
const MUTEX: &str = "mutex";
const MEBIBYTE: f64 = (1 << 20) as f64;

/// When a claim holds.
#[derive(Clone, Copy, Debug)]
enum Holds {
    AtLeast(f64),
    AtMost(f64),
}

/// Rows that a claim is about.
#[derive(Clone, Copy, Debug)]
struct About {
    name: &'static str,
    /// A parameter that a row must have.
    only: &'static [(&'static str, Is)],
}

/// What a parameter must be.
#[derive(Clone, Copy, Debug)]
enum Is {
    Number(f64),
    Word(&'static str),
}

/// What of the rows is compared.
#[derive(Clone, Copy, Debug)]
enum What {
    /// The figure.
    Figure,
    /// The figure by that of the best peer.
    Ratio,
    /// A parameter.
    Seen(&'static str),
    /// The figure by that of other rows.
    By(About),
    /// A parameter by that of other rows.
    SeenBy(&'static str, About),
    /// The figure by that of another engine, of the study's scheme and of ours.
    To(&'static str),
}

struct Claim {
    says: &'static str,
    about: About,
    what: What,
    holds: Holds,
    unit: &'static str,
}

const fn all(name: &'static str) -> About {
    About { name, only: &[] }
}

const TEN: (&str, Is) = ("initiators", Is::Number(10.0));
const ONE: (&str, Is) = ("initiators", Is::Number(1.0));
const MEDIAN: (&str, Is) = ("percentile", Is::Number(50.0));
const LATE: (&str, Is) = ("percentile", Is::Number(99.0));
const IDLE: (&str, Is) = ("when", Is::Word("idle"));
const LOADED: (&str, Is) = ("when", Is::Word("after loads"));
const LEFT: (&str, Is) = ("when", Is::Word("peers left"));

const CLAIMS: [Claim; 26] = [
    Claim {
        says: "one pair, TCP by one connection: at least 1.25 times the best peer",
        about: all("tunnel.tcp1"),
        what: What::Ratio,
        holds: Holds::AtLeast(1.25),
        unit: "x",
    },
    Claim {
        says: "one pair, datagrams of 200 bytes: at least 1.2 times the best peer",
        about: all("tunnel.udp200"),
        what: What::Ratio,
        holds: Holds::AtLeast(1.2),
        unit: "x",
    },
    Claim {
        says: "one pair, the median ping beside TCP: at most 0.6 times the best peer's",
        about: About { name: "tunnel.ping_load", only: &[MEDIAN] },
        what: What::Ratio,
        holds: Holds::AtMost(0.6),
        unit: "x",
    },
    Claim {
        says: "ten initiators: the sum of TCP is not below that of one pair",
        about: About { name: "tunnel.ten_tcp", only: &[TEN] },
        what: What::By(all("tunnel.tcp1")),
        holds: Holds::AtLeast(1.0),
        unit: "x",
    },
    Claim {
        says: "ten initiators, 20 Mbit/s of datagrams each: nothing is lost",
        about: About { name: "tunnel.ten_udp", only: &[TEN] },
        what: What::Seen("lost"),
        holds: Holds::AtMost(0.0),
        unit: "%",
    },
    Claim {
        says: "ten initiators, 20 Mbit/s of datagrams each: 99 of 100 pings take at most 5 ms",
        about: About { name: "tunnel.ten_udp_ping", only: &[TEN, LATE] },
        what: What::Figure,
        holds: Holds::AtMost(5.0),
        unit: "ms",
    },
    Claim {
        says: "ten initiators: the responder keeps at most 20 MiB in memory",
        about: About { name: "tunnel.memory", only: &[TEN, LOADED] },
        what: What::Figure,
        holds: Holds::AtMost(20.0 * MEBIBYTE),
        unit: "bytes",
    },
    Claim {
        says: "no datagram of a flow overtakes another",
        about: all("tunnel.udp200"),
        what: What::Seen("reordered"),
        holds: Holds::AtMost(0.0),
        unit: "packets",
    },
    Claim {
        says: "no datagram of a flow overtakes another, ten initiators",
        about: About { name: "tunnel.ten_udp", only: &[TEN] },
        what: What::Seen("reordered"),
        holds: Holds::AtMost(0.0),
        unit: "packets",
    },
    Claim {
        says: "at twice the capacity, no less arrives than at capacity",
        about: About { name: "tunnel.overload", only: &[("times", Is::Number(2.0))] },
        what: What::By(About { name: "tunnel.overload", only: &[("times", Is::Number(1.0))] }),
        holds: Holds::AtLeast(1.0),
        unit: "x",
    },
    Claim {
        says: "traffic is back within 3 s when an end moves or restarts",
        about: all("tunnel.back"),
        what: What::Figure,
        holds: Holds::AtMost(3.0),
        unit: "s",
    },
    Claim {
        says: "hostile datagrams leave at least 0.7 of what they leave beside a closed port",
        about: all("tunnel.hostile_kept"),
        what: What::Figure,
        holds: Holds::AtLeast(0.7),
        unit: "x",
    },
    Claim {
        says: "hostile datagrams do not make memory grow by more than 1 MiB",
        about: all("tunnel.hostile_memory"),
        what: What::Figure,
        holds: Holds::AtMost(MEBIBYTE),
        unit: "bytes",
    },
    Claim {
        says: "90,000 forged initiations a second leave a session at least 0.8 of what they leave beside a closed port",
        about: all("tunnel.flood_kept"),
        what: What::Figure,
        holds: Holds::AtLeast(0.8),
        unit: "x",
    },
    Claim {
        says: "a peer has a session with its third initiation meanwhile",
        about: all("tunnel.flood_tries"),
        what: What::Figure,
        holds: Holds::AtMost(3.0),
        unit: "initiations",
    },
    Claim {
        says: "forged initiations do not make memory grow by more than 1 MiB",
        about: all("tunnel.flood_memory"),
        what: What::Figure,
        holds: Holds::AtMost(MEBIBYTE),
        unit: "bytes",
    },
    Claim {
        says: "a datagram with a bad mac1 or an unknown index costs at most 1 us",
        about: all("tunnel.hostile_cost"),
        what: What::Figure,
        holds: Holds::AtMost(1000.0),
        unit: "ns",
    },
    Claim {
        says: "study: its scheme carries more by one TCP connection than the conventional one",
        about: all("tunnel.tcp1"),
        what: What::To(CONVENTIONAL),
        holds: Holds::AtLeast(1.0),
        unit: "x",
    },
    Claim {
        says: "study: its scheme carries more datagrams than the conventional one",
        about: all("tunnel.udp1300"),
        what: What::To(CONVENTIONAL),
        holds: Holds::AtLeast(1.0),
        unit: "x",
    },
    Claim {
        says: "study: its scheme delays less beside TCP than the conventional one",
        about: About { name: "tunnel.ping_load", only: &[MEDIAN] },
        what: What::To(CONVENTIONAL),
        holds: Holds::AtMost(1.0),
        unit: "x",
    },
    Claim {
        says: "study: its scheme carries more from ten initiators than the conventional one",
        about: About { name: "tunnel.ten_tcp", only: &[TEN] },
        what: What::To(CONVENTIONAL),
        holds: Holds::AtLeast(1.0),
        unit: "x",
    },
    Claim {
        says: "study: the delay beside TCP grows little with connections, ten to one (twice at most)",
        about: About { name: "tunnel.ten_tcp_ping", only: &[TEN, MEDIAN] },
        what: What::By(About { name: "tunnel.ten_tcp_ping", only: &[ONE, MEDIAN] }),
        holds: Holds::AtMost(2.0),
        unit: "x",
    },
    Claim {
        says: "study: memory is given back at the end of the connections",
        about: About { name: "tunnel.memory", only: &[TEN, LEFT] },
        what: What::By(About { name: "tunnel.memory", only: &[TEN, LOADED] }),
        holds: Holds::AtMost(1.0),
        unit: "x",
    },
    Claim {
        says: "study: the threads of the system stay constant, under load",
        about: About { name: "tunnel.memory", only: &[TEN, LOADED] },
        what: What::SeenBy("threads", About { name: "tunnel.memory", only: &[TEN, IDLE] }),
        holds: Holds::AtMost(1.0),
        unit: "x",
    },
    Claim {
        says: "study: the threads of the system stay constant, ten initiators to one",
        about: About { name: "tunnel.memory", only: &[TEN, LOADED] },
        what: What::SeenBy("threads", About { name: "tunnel.memory", only: &[ONE, LOADED] }),
        holds: Holds::AtMost(1.0),
        unit: "x",
    },
    Claim {
        says: "study: ten connections at once carry no less than one in the same network",
        about: About { name: "tunnel.ten_tcp", only: &[TEN] },
        what: What::By(About { name: "tunnel.ten_tcp", only: &[ONE] }),
        holds: Holds::AtLeast(1.0),
        unit: "x",
    },
];

/// All rows that the figures allow, of every engine that they are about.
pub(super) fn rows(results: &[Row]) -> Vec<Row> {
    let mut engines: Vec<&'static str> = results.iter().map(|row| row.engine).collect();
    engines.sort_unstable();
    engines.dedup();
    // Ours first.
    engines.sort_by_key(|engine| *engine != OURS);
    let of = |claim| engines.iter().filter_map(move |engine| answer(claim, engine, results));
    CLAIMS.iter().flat_map(of).collect()
}

fn answer(claim: &Claim, engine: &'static str, results: &[Row]) -> Option<Row> {
    let Claim { says, about, what, holds, unit } = claim;
    let worst_of = |engine, about: &About, value: &dyn Fn(&Row) -> Option<f64>| -> Option<f64> {
        let rows = results.iter().filter(|row| row.engine == engine && about.has(row));
        rows.filter_map(value).max_by(|one, other| holds.worse(*one, *other))
    };
    let worst = |about: &About, value: &dyn Fn(&Row) -> Option<f64>| worst_of(engine, about, value);
    let figure = |row: &Row| Some(row.runs.value);
    let is_scheme = engine == OURS || engine == MUTEX;
    let value = match what {
        What::Figure => worst(about, &figure),
        What::Ratio => worst(about, &|row| row.peer.as_ref().map(|peer| peer.ratio)),
        What::Seen(name) => worst(about, &|row| number(row, name)),
        What::By(other) => Some(worst(about, &figure)? / worst(other, &figure)?),
        What::SeenBy(name, other) => {
            let seen = |row: &Row| number(row, name);
            Some(worst(about, &seen)? / worst(other, &seen)?)
        }
        What::To(other) if is_scheme => {
            Some(worst(about, &figure)? / worst_of(other, about, &figure)?)
        }
        What::To(_) => None,
    }?;
    // The bare way has neither memory nor threads.
    value.is_finite().then(|| {
        let held = if holds.by(value) { "yes" } else { "no" };
        Row::new(NAME, engine, unit, &[value]).with("says", *says).with("held", held)
    })
}

impl Holds {
    fn by(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }

    /// Greater is worse.
    fn worse(self, one: f64, other: f64) -> Ordering {
        match self {
            Self::AtLeast(_) => other.total_cmp(&one),
            Self::AtMost(_) => one.total_cmp(&other),
        }
    }
}

impl About {
    fn has(&self, row: &Row) -> bool {
        let is = |(name, is): &(&str, Is)| match is {
            Is::Number(expected) => number(row, name) == Some(*expected),
            Is::Word(word) => row.params.get(*name).and_then(Value::as_str) == Some(word),
        };
        row.name == self.name && self.only.iter().all(is)
    }
}

/// A parameter that is a number.
pub(super) fn number(row: &Row, name: &str) -> Option<f64> {
    row.params.get(name).and_then(Value::as_f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, value: f64) -> Row {
        Row::new(name, OURS, "", &[value])
    }

    /// The answers to the claims that these figures allow: by how much, and whether they hold.
    fn answers(results: &[Row]) -> Vec<(f64, &'static str)> {
        let held = |row: &Row| if row.params["held"] == "yes" { "yes" } else { "no" };
        rows(results).iter().map(|row| (row.runs.value, held(row))).collect()
    }

    #[test]
    fn a_ratio_is_that_to_the_best_peer() {
        let tcp = |ours: f64| row("tunnel.tcp1", ours).beside("peer", &[ours], &[4.0]);
        assert_eq!(answers(&[tcp(5.0)]), [(1.25, "yes")]);
        assert_eq!(answers(&[tcp(4.8)]), [(1.2, "no")]);
        assert_eq!(answers(&[row("tunnel.tcp1", 5.0)]), []);
    }

    #[test]
    fn of_several_figures_the_worst_counts() {
        let back = |time: f64| row("tunnel.back", time);
        assert_eq!(answers(&[back(0.1), back(3.1), back(2.0)]), [(3.1, "no")]);
        let kept = |part: f64| row("tunnel.hostile_kept", part);
        assert_eq!(answers(&[kept(0.9), kept(0.6)]), [(0.6, "no")]);
        assert_eq!(answers(&[kept(0.9), kept(0.7)]), [(0.7, "yes")]);
    }

    #[test]
    fn figures_stand_by_figures_of_the_same_engine() {
        let overload = |times: u8, rate: f64| row("tunnel.overload", rate).with("times", times);
        let peer = Row { engine: "peer", ..overload(2, 1.0) };
        assert_eq!(answers(&[peer, overload(1, 10.0), overload(2, 9.0)]), [(0.9, "no")]);
    }

    #[test]
    fn the_schemes_stand_by_the_conventional_one_and_nobody_else_does() {
        let tcp = |engine, rate: f64| Row { engine, ..row("tunnel.tcp1", rate) };
        let all = [tcp(OURS, 9.0), tcp("peer", 5.0), tcp(MUTEX, 2.0), tcp(CONVENTIONAL, 3.0)];
        let engines: Vec<_> = rows(&all).iter().map(|row| row.engine).collect();
        assert_eq!(
            (engines, answers(&all)),
            (vec![OURS, MUTEX], vec![(3.0, "yes"), (2.0 / 3.0, "no")])
        );
    }

    #[test]
    fn threads_and_memory_are_those_of_the_responder() {
        let memory = |initiators: u8, when: &str, bytes: f64, threads: f64| {
            let row = row("tunnel.memory", bytes).with("threads", threads);
            row.with("initiators", initiators).with("when", when)
        };
        let found = answers(&[
            memory(1, "after loads", 1e6, 3.0),
            memory(10, "idle", 1e6, 3.0),
            memory(10, "after loads", 4e7, 3.0),
            memory(10, "peers left", 3e7, 4.0),
        ]);
        assert_eq!(found, [(4e7, "no"), (0.75, "yes"), (1.0, "yes"), (1.0, "yes")]);
    }
}
