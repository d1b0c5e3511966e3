//! The study's expectations, and the aims of the API, each held against the figures: a row for each, with its answer.
//!
//! Contract: an expectation is about the study's own job, with its one static struct, or its first packet; aims are about the realistic job,
//! with bursts of 32 and more. A figure that is not there leaves its row out.

use serde_json::Value;

use super::technique::{FLOOR, Job};
use crate::bench::document::Row;

/// The name of the rows.
pub(super) const NAME: &str = "java.expectation";

/// Rows of the study's job.
const STUDY: &str = "java.study";
/// Rows of what a first packet takes.
pub(super) const SET_UP: &str = "java.set_up";

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
    /// The rows that it is about.
    rows: &'static str,
    /// What takes longer, or is compared.
    of: &'static str,
    to: &'static str,
    holds: Holds,
}

const EXPECTATIONS: [Expectation; 15] = [
    Expectation {
        says: "objects by JNI are by far the slowest: 300 to 650 times the fastest",
        rows: STUDY,
        of: "object_lookup",
        to: "direct",
        holds: Holds::AtLeast(300.0),
    },
    Expectation {
        says: "the lookup of ids in each call is what the object costs",
        rows: STUDY,
        of: "object_lookup",
        to: "object_methods",
        holds: Holds::AtLeast(1.25),
    },
    Expectation {
        says: "an object costs the same, made in Java or in native code",
        rows: STUDY,
        of: "object_lookup_native",
        to: "object_lookup",
        holds: Holds::Alike,
    },
    Expectation {
        says: "byte buffers are the slowest of the other three, by their copies: 2.74 times direct",
        rows: STUDY,
        of: "buffer_direct_big_endian",
        to: "direct",
        holds: Holds::AtLeast(2.0),
    },
    Expectation {
        says: "direct and heap buffers are very similar",
        rows: STUDY,
        of: "buffer_heap_big_endian",
        to: "buffer_direct_big_endian",
        holds: Holds::Alike,
    },
    Expectation {
        says: "native order makes direct buffers faster than their default order",
        rows: STUDY,
        of: "buffer_direct_big_endian",
        to: "buffer_direct",
        holds: Holds::AtLeast(1.05),
    },
    Expectation {
        says: "byte buffers cannot lie on packet memory, so they copy and are too slow",
        rows: STUDY,
        of: "mapped_varhandle",
        to: "direct",
        holds: Holds::AtLeast(2.0),
    },
    Expectation {
        says: "Unsafe into an object is very close to direct",
        rows: STUDY,
        of: "unsafe_object",
        to: "direct",
        holds: Holds::Alike,
    },
    Expectation {
        says: "Unsafe into an object is a little slower than direct",
        rows: STUDY,
        of: "unsafe_object",
        to: "direct",
        holds: Holds::AtLeast(1.02),
    },
    Expectation {
        says: "fields that are not copied into an object are saved, once no call per packet hides it",
        rows: STUDY,
        of: "unsafe_object_batched",
        to: "direct_batched",
        holds: Holds::AtLeast(1.05),
    },
    Expectation {
        says: "a call per packet costs next to nothing beside the fields",
        rows: STUDY,
        of: "direct",
        to: "direct_batched",
        holds: Holds::AtMost(1.25),
    },
    Expectation {
        says: "an aligned struct is faster than a packed one",
        rows: STUDY,
        of: FLOOR,
        to: "floor_aligned",
        holds: Holds::AtLeast(1.05),
    },
    Expectation {
        says: "JNA neglects speed: many times slower than direct",
        rows: STUDY,
        of: "jna_structure",
        to: "direct",
        holds: Holds::AtLeast(10.0),
    },
    Expectation {
        says: "Javolution is heavy to set up: its first packet takes ten times as long as direct's",
        rows: SET_UP,
        of: "javolution_struct",
        to: "direct",
        holds: Holds::AtLeast(10.0),
    },
    Expectation {
        says: "Swig lacks performance with numerous objects: ten times slower than direct",
        rows: STUDY,
        of: "swig",
        to: "direct",
        holds: Holds::AtLeast(10.0),
    },
];

/// At most so many times Rust's time, with all checks on.
const AIM: f64 = 1.2;
/// By JDK 25's memory, at most so many times as long as by JDK 17's, each to Rust in the same JVM.
const FOREIGN_AIM: f64 = 1.3;
/// Bytes a packet, besides what JMH allocates in each round, that are nothing: an object, of 16 at least, for 160 packets.
const NOTHING: f64 = 0.1;
/// The technique that is the API.
const API: &str = "tamis";
/// The first JDK whose `java.lang.foreign` is final.
const FOREIGN_SINCE: u64 = 22;
/// Bursts that the aims are about.
const LEAST_BURST: u64 = 32;

/// All rows that the figures allow.
pub(super) fn rows(results: &[Row]) -> Vec<Row> {
    let mut jdks: Vec<u64> = results.iter().filter_map(|row| number(row, "jdk")).collect();
    jdks.dedup();
    let study = jdks
        .iter()
        .flat_map(|jdk| EXPECTATIONS.iter().filter_map(|one| expectation(one, results, *jdk)));
    let aims = results.iter().filter(|row| is_aimed_at(row)).flat_map(|row| {
        [speed(row), memory(row, results), foreign(row, results)].into_iter().flatten()
    });
    study.chain(aims).collect()
}

fn expectation(expectation: &Expectation, results: &[Row], jdk: u64) -> Option<Row> {
    let Expectation { says, rows, of, to, holds } = expectation;
    let figure = |name: &str| {
        let is = |row: &&Row| {
            row.name == *rows
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
    let factor = row.peer.as_ref()?.ratio;
    let says = "a burst of 32 and more costs at most 1.2 times Rust's, all checks on";
    aim(row, says, factor, factor <= AIM)
}

fn memory(row: &Row, results: &[Row]) -> Option<Row> {
    let allocated = |row: &Row| row.params.get("allocated").and_then(Value::as_f64);
    let bytes =
        allocated(row)? - allocated(results.iter().find(|one| is_beside(one, row, FLOOR))?)?;
    let says = "nothing is allocated for a packet";
    Some(Row { unit: "B", ..aim(row, says, bytes.max(0.0), bytes <= NOTHING)? })
}

/// `java.lang.foreign` beside the oldest JDK's way.
fn foreign(row: &Row, results: &[Row]) -> Option<Row> {
    let is_older = |one: &&Row| is_like(one, row, row.engine) && jdk(one) < FOREIGN_SINCE;
    let older = results.iter().find(is_older).filter(|_| jdk(row) >= FOREIGN_SINCE)?;
    let factor = row.peer.as_ref()?.ratio / older.peer.as_ref()?.ratio;
    let says = "java.lang.foreign is within 1.3 times of the JDK 17 path";
    aim(row, says, factor, factor <= FOREIGN_AIM).filter(|_| row.engine == API)
}

fn aim(row: &Row, says: &str, factor: f64, held: bool) -> Option<Row> {
    let answer = answer(row.engine, says, jdk(row), factor, held);
    Some(answer.with("burst", number(row, "burst")?))
}

/// Of another technique, with bursts of the same size, in the same JVM.
fn is_beside(one: &Row, row: &Row, engine: &str) -> bool {
    is_like(one, row, engine) && jdk(one) == jdk(row)
}

/// The same in any JVM.
fn is_like(one: &Row, row: &Row, engine: &str) -> bool {
    one.name == row.name && one.engine == engine && number(one, "burst") == number(row, "burst")
}

fn jdk(row: &Row) -> u64 {
    number(row, "jdk").unwrap_or_default()
}

fn is_aimed_at(row: &Row) -> bool {
    is_of(row, Job::Realistic)
        && matches!(row.engine, "unsafe" | API)
        && number(row, "burst").is_some_and(|burst| burst >= LEAST_BURST)
}

fn is_of(row: &Row, job: Job) -> bool {
    row.name.strip_prefix("java.") == Some(job.name())
}

/// A parameter that is a whole number.
pub(super) fn number(row: &Row, name: &str) -> Option<u64> {
    row.params.get(name).and_then(Value::as_u64)
}
