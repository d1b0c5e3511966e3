//! The program `tamis-bench`: its commands, and what it says when it cannot measure.

use std::process::{Command, Output};

use serde_json::Value;

fn bench(args: &[&str]) -> Output {
    let ran = Command::new(env!("CARGO_BIN_EXE_tamis-bench")).args(args).output();
    ran.expect("tamis-bench is built beside its tests")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Documents, one a line, each of them whole.
fn lines(printed: &[u8]) -> Vec<Value> {
    let text = text(printed);
    assert!(text.is_empty() || text.ends_with('\n'), "{text}");
    let read = |line: &str| {
        serde_json::from_str::<Value>(line).unwrap_or_else(|why| panic!("{why}: {line}"))
    };
    let lines: Vec<Value> = text.lines().map(read).collect();
    let is_whole = |line: &Value| {
        line["schema"] == "tamis.bench/2"
            && line["machine"]["cores"].is_u64()
            && line["date"].is_string()
            && (line["value"].is_f64() || line["missing"].is_string())
    };
    assert!(lines.iter().all(is_whole), "{lines:?}");
    lines
}

/// Hours of measuring: rows appear as they are measured, and SIGTERM leaves whole ones.
#[cfg(unix)]
#[test]
fn rows_are_there_when_sigterm_comes() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::Stdio;

    let mut bench = Command::new(env!("CARGO_BIN_EXE_tamis-bench"));
    bench.args(["access", "--engine", "tamis", "--runs", "10", "--packets", "20000", "--json"]);
    bench.args(["--preset", &vec!["1"; 1000].join(",")]);
    let mut child = bench.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut printed = String::new();
    for _ in 0..3 {
        output.read_line(&mut printed).unwrap();
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    output.read_to_string(&mut printed).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(143), "{status}");
    let rows = lines(printed.as_bytes());
    assert!((3..1000).contains(&rows.len()), "{}", rows.len());
}

/// A second for what takes minutes: rows of fewer rounds, and a list of what was left out.
#[test]
fn what_there_is_no_time_for_is_left_out_and_said() {
    let args = ["access", "--engine", "tamis", "--runs", "100000", "--packets", "20000"];
    let ran = bench(&[&args[..], &["--preset", "1,4", "--for", "1", "--json"]].concat());
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let rows = lines(&ran.stdout);
    let [row, missing] = &rows[..] else { panic!("{rows:?}") };
    assert!((1..100_000).contains(&row["runs"].as_u64().unwrap()), "{row}");
    assert_eq!(row["name"], "access.a.preset1");
    assert_eq!(missing["missing"], "access, preset 4");
    assert!(missing["why"].as_str().unwrap().contains("time"), "{missing}");
}

#[test]
fn every_command_has_its_help() {
    let all = text(&bench(&["--help"]).stdout);
    for (command, option) in [
        ("replay", "--peers"),
        ("rules", "--figure"),
        ("access", "--must-show"),
        #[cfg(target_os = "linux")]
        ("tunnel", "--forms"),
        ("workload", "--oracle"),
    ] {
        assert!(all.contains(command), "{all}");
        let help = bench(&[command, "--help"]);
        assert!(help.status.success() && text(&help.stdout).contains(option), "{help:?}");
    }
}

/// The rows of ends between hosts in namespaces, where those can be had.
#[cfg(target_os = "linux")]
fn measured(args: &[&str]) -> Option<Vec<Value>> {
    let ran = bench(args);
    let said = text(&ran.stderr);
    if said.contains("it needs root") || said.contains("is not installed") {
        eprintln!("SKIPPED: {said}");
        return None;
    }
    assert!(ran.status.success(), "{said}");
    Some(lines(&ran.stdout))
}

/// Two hosts in namespaces, each with an end that seals by one thread: it moves, it restarts, and traffic is back.
#[cfg(target_os = "linux")]
#[test]
fn ends_of_an_overlay_are_started_and_measured() {
    let args = ["tunnel", "--without-tamis", "--forms", "--quick", "--only", "back", "--json"];
    let Some(rows) = measured(&args) else { return };
    for engine in ["conventional", "mutex"] {
        let is = |row: &&Value| row["name"] == "tunnel.back" && row["engine"] == engine;
        let events = rows.iter().filter(is).count();
        assert_eq!(events, 3, "{engine}: {rows:?}");
    }
}

/// The study's evaluation, a slice of it: a responder behind a paced link with its own memory, initiators behind NAPT.
#[cfg(target_os = "linux")]
#[test]
fn the_evaluation_of_an_overlay_as_the_study_has_it() {
    let args = ["tunnel", "--without-tamis", "--quick", "--only", "star", "--as-study"];
    let args = [&args[..], &["--forms", "--initiators", "3", "--json"]].concat();
    let Some(rows) = measured(&args) else { return };
    if rows.iter().any(|row| row["why"].as_str().is_some_and(|why| why.contains("cgroup"))) {
        eprintln!("SKIPPED: no control groups: {rows:?}");
        return;
    }
    let of = |name: &str, engine: &str| {
        let is = |row: &&Value| row["name"] == name && row["engine"] == engine;
        rows.iter().filter(is).cloned().collect::<Vec<_>>()
    };
    for engine in ["veth", "conventional", "mutex"] {
        for load in ["tunnel.ten_tcp", "tunnel.ten_udp_most", "tunnel.ten_udp"] {
            // iperf3 gives up where a flood leaves nothing of its own connection: that is said, and the bare way never does it.
            let gave_up = |row: &Value| {
                let why = row["why"].as_str().is_some_and(|why| why.contains(&format!("{load}: ")));
                row["missing"] == engine && why
            };
            if engine != "veth" && rows.iter().any(gave_up) {
                continue;
            }
            let [row] = &of(load, engine)[..] else { panic!("{engine}, {load}: {rows:?}") };
            let (sum, least) = (row["value"].as_f64().unwrap(), &row["params"]["least"]);
            // No more than the link carries, a burst aside; each of the three no more than a third of the sum.
            assert!(sum > 0.0 && sum < 1.1e9, "{row}");
            assert!(least.as_f64().unwrap() * 3.0 <= sum * 1.001, "{row}");
            assert_eq!(row["params"]["initiators"], 3);
            assert_eq!(of(&format!("{load}_ping"), engine).len(), 2, "{engine}: {rows:?}");
        }
    }
    for engine in ["conventional", "mutex"] {
        let trend = of("tunnel.trend", engine);
        let seconds: Vec<_> = trend.iter().map(|row| row["params"]["second"].as_u64()).collect();
        assert!(seconds.len() >= 3 && seconds.contains(&Some(0)), "{engine}: {seconds:?}");
        let threads = |row: &Value| row["params"]["threads"].as_f64().unwrap() >= 1.0;
        assert!(trend.iter().all(threads), "{trend:?}");
        let [most] = &of("tunnel.memory_of_host", engine)[..] else { panic!("{rows:?}") };
        let most = most["value"].as_f64().unwrap();
        // Pages that its processes share with others are counted where they were read first.
        assert!((1e6..=1.1e9).contains(&most), "{most}");
    }
    // The bare way has no daemon.
    assert!(of("tunnel.trend", "veth").is_empty());
}

#[test]
fn the_recorded_stream_comes_out() {
    let ran = bench(&["workload", "--preset", "1", "--hash"]);
    assert_eq!((ran.status.code(), text(&ran.stderr).as_str()), (Some(0), ""));
    assert!(text(&ran.stdout).starts_with("first1000="), "{ran:?}");
}

#[test]
fn what_is_wrong_is_told_in_one_line() {
    for (args, what) in [
        (&["workload", "--preset", "1"][..], "expected --hash"),
        (&["access", "--engine", "nonsense"], "found nonsense"),
    ] {
        let ran = bench(args);
        let message = text(&ran.stderr);
        assert_eq!((ran.status.code(), message.lines().count()), (Some(2), 1), "{message}");
        assert!(message.starts_with("tamis-bench: ") && message.contains(what), "{message}");
    }
}

/// Pages that a layout of 100,000 rules takes: what it asks for, 80 bytes a rule, and what the allocator adds.
#[test]
fn a_layout_is_resident_with_what_the_allocator_adds() {
    let ran = bench(&["rules", "--resident", "linked:1"]);
    let Ok(bytes) = text(&ran.stdout).trim().parse::<usize>() else {
        eprintln!("SKIPPED: this machine does not tell a process's resident memory: {ran:?}");
        return;
    };
    assert!((8_000_000..16_000_000).contains(&bytes), "{bytes}");
}
