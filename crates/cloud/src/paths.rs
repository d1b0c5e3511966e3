//! The paths of a relay, as a control socket lists them and `tamis-cloud paths` prints them.

use std::cmp::Reverse;

use overlay::{PathCounts, Sources};
use packet::visible;
use serde_json::{Value, json};

/// Paths that are listed: those with the most bytes.
const MOST: usize = 1_000;

/// The answer to a question for a relay's paths.
pub(crate) fn answer(paths: impl Iterator<Item = PathCounts>) -> Value {
    let mut all: Vec<PathCounts> = paths.collect();
    all.sort_by(|one, other| {
        let key = |path: &PathCounts| Reverse((path.bytes, path.datagrams));
        key(one).cmp(&key(other)).then_with(|| one.pair.cmp(&other.pair))
    });
    let count = all.len();
    let listed = all.into_iter().take(MOST).map(|path| {
        let PathCounts { pair, port, sources, datagrams, bytes } = path;
        json!({
            "nodes": [pair.0.as_str(), pair.1.as_str()],
            "port": port,
            "sources": shown(sources),
            "datagrams": datagrams,
            "bytes": bytes,
        })
    });
    let listed: Vec<Value> = listed.collect();
    json!({ "schema": "tamis.cloud-paths/1", "count": count, "paths": listed })
}

/// Where nodes send from; of one by TCP, where its connection is.
fn shown(sources: Sources) -> [Option<String>; 2] {
    sources.map(|source| {
        source.map(|at| std::net::SocketAddr::new(at.ip().to_canonical(), at.port()).to_string())
    })
}

/// Prints an answer.
pub(crate) fn print(answer: &Value) {
    println!("{:<20} {:<20} {:>5} {:>12} {:>16}", "node", "node", "port", "datagrams", "bytes");
    let paths = answer["paths"].as_array().map(Vec::as_slice).unwrap_or_default();
    for path in paths {
        let name = |side: usize| {
            visible::word(path["nodes"][side].as_str().unwrap_or_default()).into_owned()
        };
        let number = |key: &str| path[key].as_u64().unwrap_or_default();
        let [port, datagrams, bytes] = ["port", "datagrams", "bytes"].map(number);
        println!("{:<20} {:<20} {port:>5} {datagrams:>12} {bytes:>16}", name(0), name(1));
    }
    let all = answer["count"].as_u64().unwrap_or_default();
    if all > paths.len() as u64 {
        println!("and {} paths with fewer bytes", all - paths.len() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overlay::Pair;

    #[test]
    fn paths_with_the_most_bytes_are_listed_and_all_are_counted() {
        let name = |number: u64| format!("n{number}").parse().unwrap();
        let paths = (1..=MOST as u64 + 7).map(|number| PathCounts {
            pair: Pair::of(&name(0), &name(number)),
            port: 52_000,
            sources: [Some("[::ffff:192.0.2.1%7]:9".parse().unwrap()), None],
            datagrams: 1,
            bytes: number,
        });
        let answer = answer(paths);
        assert_eq!(answer["count"], MOST + 7);
        let listed = answer["paths"].as_array().unwrap();
        assert_eq!(listed.len(), MOST);
        assert_eq!(listed[0]["bytes"], MOST + 7);
        assert_eq!(listed[MOST - 1]["bytes"], 8);
        assert_eq!(listed[0]["sources"], json!(["192.0.2.1:9", null]));
    }
}
