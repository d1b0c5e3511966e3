//! The study's expectations, and the aims of the API, each held against the figures: a row for each, with its answer.
//!
//! Contract: an expectation is about the study's own job, with its one static struct; aims are about the realistic job,
//! with bursts of 32 and more. A figure that is not there leaves its row out.

use serde_json::Value;

use super::FLOOR;
use super::technique::Job;
use crate::bench::document::Row;

/// The name of the rows.
pub(super) const NAME: &str = "java.expectation";

/// When the expectation holds, by how many times the first of both takes the time of the second.
enum Holds {
    /// At least so many times as long.
    AtLeast(f64),
    /// At most so many times as long.
    AtMost(f64),
    /// Neither more nor less than a quarter apart.
    Alike,
}

/// Something that the study expects, or says: two techniques, and how they compare.
struct Expectation {
    says: &'static str,
    /// What takes longer, or is compared.
    of: &'static str,
    to: &'static str,
    holds: Holds,
}

const EXPECTATIONS: [Expectation; 13] = [
    Expectation {
        says: "objects by JNI are by far the slowest: 300 to 650 times the fastest",
        of: "object_lookup",
        to: "direct",
        holds: Holds::AtLeast(300.0),
    },
    Expectation {
        says: "the lookup of ids in each call is what the object costs",
        of: "object_lookup",
        to: "object_methods",
        holds: Holds::AtLeast(1.25),
    },
    Expectation {
        says: "an object costs the same, made in Java or in native code",
        of: "object_lookup_native",
        to: "object_lookup",
        holds: Holds::Alike,
    },
    Expectation {
        says: "byte buffers are the slowest of the other three, by their copies: 2.74 times direct",
        of: "buffer_direct_big_endian",
        to: "direct",
        holds: Holds::AtLeast(2.0),
    },
    Expectation {
        says: "direct and heap buffers are very similar",
        of: "buffer_heap_big_endian",
        to: "buffer_direct_big_endian",
        holds: Holds::Alike,
    },
    Expectation {
        says: "native order makes direct buffers faster than their default order",
        of: "buffer_direct_big_endian",
        to: "buffer_direct",
        holds: Holds::AtLeast(1.05),
    },
    Expectation {
        says: "byte buffers cannot lie on packet memory, so they copy and are too slow",
        of: "mapped_varhandle",
        to: "direct",
        holds: Holds::AtLeast(2.0),
    },
    Expectation {
        says: "Unsafe into an object is very close to direct",
        of: "unsafe_object",
        to: "direct",
        holds: Holds::Alike,
    },
    Expectation {
        says: "and a little slower",
        of: "unsafe_object",
        to: "direct",
        holds: Holds::AtLeast(1.02),
    },
    Expectation {
        says: "fields that are not copied into an object are saved, once no call per packet hides it",
        of: "unsafe_object_batched",
        to: "direct_batched",
        holds: Holds::AtLeast(1.05),
    },
    Expectation {
        says: "a call per packet costs next to nothing beside the fields",
        of: "direct",
        to: "direct_batched",
        holds: Holds::AtMost(1.25),
    },
    Expectation {
        says: "an aligned struct is faster than a packed one",
        of: FLOOR,
        to: "floor_aligned",
        holds: Holds::AtLeast(1.05),
    },
    Expectation {
        says: "JNA neglects speed",
        of: "jna_structure",
        to: "direct",
        holds: Holds::AtLeast(10.0),
    },
];

/// At most so many times Rust's time, with all checks on.
const AIM: f64 = 1.2;
/// Bytes a packet that are nothing: what JMH itself allocates in a round.
const NOTHING: f64 = 0.05;
/// Bursts that the aims are about.
const LEAST_BURST: u64 = 32;

/// All rows that the figures allow.
pub(super) fn rows(results: &[Row]) -> Vec<Row> {
    let mut jdks: Vec<u64> = results.iter().filter_map(|row| number(row, "jdk")).collect();
    jdks.dedup();
    let study = jdks
        .iter()
        .flat_map(|jdk| EXPECTATIONS.iter().filter_map(|one| expectation(one, results, *jdk)));
    study.chain(results.iter().filter_map(speed)).chain(results.iter().filter_map(memory)).collect()
}

fn expectation(expectation: &Expectation, results: &[Row], jdk: u64) -> Option<Row> {
    let Expectation { says, of, to, holds } = expectation;
    let figure = |name: &str| {
        let is = |row: &&Row| {
            is_of(row, Job::Study)
                && row.engine == name
                && number(row, "jdk") == Some(jdk)
                && number(row, "structs") == Some(1)
        };
        results.iter().find(is).map(|row| row.runs.value)
    };
    let factor = figure(of)? / figure(to)?;
    let held = match holds {
        Holds::AtLeast(least) => factor >= *least,
        Holds::AtMost(most) => factor <= *most,
        Holds::Alike => (0.8..=1.25).contains(&factor),
    };
    Some(answer(of, says, jdk, factor, held).with("to", *to))
}

fn answer(engine: &'static str, says: &str, jdk: u64, factor: f64, held: bool) -> Row {
    Row::new(NAME, engine, "x", &[factor])
        .with("expected", says)
        .with("jdk", jdk)
        .with("held", if held { "yes" } else { "no" })
}

/// The API, and what it is built on, beside Rust.
fn speed(row: &Row) -> Option<Row> {
    let factor = row.peer.as_ref().filter(|_| is_aimed_at(row))?.ratio;
    let says = "a burst of 32 and more costs at most 1.2 times Rust's, all checks on";
    let held = factor <= AIM;
    let burst = number(row, "burst")?;
    Some(answer(row.engine, says, number(row, "jdk")?, factor, held).with("burst", burst))
}

fn memory(row: &Row) -> Option<Row> {
    let bytes = row.params.get("allocated").filter(|_| is_aimed_at(row))?.as_f64()?;
    let says = "nothing is allocated for a packet";
    let burst = number(row, "burst")?;
    let mut answer = answer(row.engine, says, number(row, "jdk")?, bytes, bytes <= NOTHING);
    answer.unit = "B";
    Some(answer.with("burst", burst))
}

fn is_aimed_at(row: &Row) -> bool {
    is_of(row, Job::Realistic)
        && matches!(row.engine, "unsafe" | "tamis")
        && number(row, "burst").is_some_and(|burst| burst >= LEAST_BURST)
}

fn is_of(row: &Row, job: Job) -> bool {
    row.name.strip_prefix("java.") == Some(job.name())
}

/// A parameter that is a whole number.
pub(super) fn number(row: &Row, name: &str) -> Option<u64> {
    row.params.get(name).and_then(Value::as_u64)
}
