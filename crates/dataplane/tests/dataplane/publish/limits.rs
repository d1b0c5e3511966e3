//! What waits, for how long, and what it says then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use dataplane::publish::{MOST_PROGRAMS, PATIENCE, PublishError};
use rules::model::Family;
use rules::revision::Transaction;

use super::{change, published, rules, ruleset, walk};

const START: &str = "*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p udp\nCOMMIT\n";

#[test]
fn a_stale_number_is_refused_with_the_current_one() {
    let published = published(START);
    assert_eq!(change(&published, "-A PREROUTING -p tcp"), 2);
    let stale = PublishError::Stale { expected: 1, current: 2 };
    assert_eq!(published.commit_text(1, Family::Ipv4, "*mangle\nCOMMIT\n"), Err(stale.clone()));
    assert_eq!(published.commit(1, Family::Ipv4, |_| Ok(())), Err(stale.clone()));
    assert_eq!(stale.to_string(), "expected program 1 to be current, found 2");
}

#[test]
fn a_worker_that_does_not_move_on_is_named() {
    let published = published(START);
    let resting = published.worker();
    let mut worker = published.worker();
    let mut burst = worker.burst();
    for _ in 0..MOST_PROGRAMS {
        change(&published, "-A PREROUTING -p tcp");
    }
    let (number, start) = (published.program().number(), Instant::now());
    let behind = published.commit(number, Family::Ipv4, |_| Ok(())).unwrap_err();
    assert!(start.elapsed() >= PATIENCE);
    let PublishError::Behind { worker: Some(1), programs: MOST_PROGRAMS, .. } = behind else {
        panic!("{behind:?}");
    };
    let told = behind.to_string();
    assert!(told.starts_with("worker 1 does not move on: 64 programs of "), "{told}");
    assert_eq!(published.program().number(), number, "nothing has changed");
    assert_eq!(burst.program().number(), 1);
    assert!(published.snapshot().is_err());
    walk(&mut burst);
    drop(burst);
    change(&published, "-A PREROUTING -p tcp");
    let snapshot = published.snapshot().unwrap();
    let rule = rules(&snapshot.program).rule("mangle", "PREROUTING", 0).unwrap();
    assert_eq!(snapshot.rule(rule).packets, 1);
    drop(resting);
}

#[test]
fn workers_at_rest_hold_on_to_nothing() {
    let published = published(START);
    let mut worker = published.worker();
    walk(&mut worker.burst());
    for _ in 0..2 * MOST_PROGRAMS {
        let old = Arc::downgrade(&published.program());
        change(&published, "-A PREROUTING -p tcp");
        assert_eq!(old.strong_count(), 0);
    }
}

#[test]
fn whoever_holds_a_program_without_a_worker_is_told_apart() {
    let published = published(START);
    let held = published.program();
    for _ in 0..MOST_PROGRAMS {
        change(&published, "-A PREROUTING -p tcp");
    }
    let behind = published.commit(65, Family::Ipv4, |_| Ok(())).unwrap_err();
    assert!(matches!(behind, PublishError::Behind { worker: None, .. }), "{behind:?}");
    drop(held);
    assert_eq!(published.commit(65, Family::Ipv4, |_| Ok(())), Ok(66));
}

#[test]
fn what_is_refused_changes_nothing() {
    let published = published(START);
    let text = "*mangle\n-A PREROUTING -p tcp\n-A nowhere\nCOMMIT\n";
    let refused = published.commit_text(1, Family::Ipv4, text).unwrap_err();
    assert!(matches!(refused, PublishError::Load(_)), "{refused:?}");
    let refused = published.commit(1, Family::Ipv4, |transaction| {
        transaction.flush("mangle", None)?;
        transaction.flush("filter", None)
    });
    assert!(matches!(refused, Err(PublishError::Refused(_))), "{refused:?}");
    assert_eq!((published.program().number(), rules(&published.program()).rule_count()), (1, 1));
}

/// A reader does not wait for a writer that is still reading rules, or building a program of them.
#[test]
fn nobody_waits_for_a_program_that_is_being_built() {
    let published = published("*mangle\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n");
    let (started, building) = channel();
    let (all_seen, go_on) = channel();
    std::thread::scope(|scope| {
        let change = move |_: &mut Transaction<'_>| {
            started.send(()).unwrap();
            // A thread that waited for this to end would wait for ever: it ends, and the test fails.
            go_on.recv_timeout(Duration::from_secs(20)).expect("nobody waits");
            Ok(())
        };
        scope.spawn(|| assert_eq!(published.commit(1, Family::Ipv4, change), Ok(2)));
        building.recv().unwrap();
        assert_eq!(published.program().number(), 1);
        assert_eq!(published.snapshot().unwrap().program.number(), 1);
        assert_eq!(published.worker().burst().program().number(), 1);
        all_seen.send(()).unwrap();
    });
    assert_eq!(published.program().number(), 2);
}

/// The longest wait of a reader while 100,000 rules are replaced, in addition to its wait when it only reads the clock:
/// `TAMIS_TIMING=1 cargo test --release -p tamis-dataplane --test dataplane longest_wait -- --nocapture`.
#[test]
fn longest_wait_for_the_current_program() {
    let rules = if std::env::var_os("TAMIS_TIMING").is_some() { 100_000 } else { 1_000 };
    let text = |port: u32| {
        let rule = |at: u32| {
            let source = std::net::Ipv4Addr::from_bits(0x0a00_0000 + at);
            format!("-A PREROUTING -p udp -s {source} --dport {port}\n")
        };
        format!(
            "*mangle\n:PREROUTING ACCEPT [0:0]\n{}COMMIT\n",
            (0..rules).map(rule).collect::<String>()
        )
    };
    let published = published(&text(1));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut longest, mut floor, mut asked) = (Duration::ZERO, Duration::ZERO, 0_u64);
            while !done.load(Relaxed) {
                let start = Instant::now();
                drop(published.program());
                let end = Instant::now();
                // For as long as it asks it only looks at the clock: the machine takes the thread away as often.
                let (mut before, until) = (end, end + (end - start).min(Duration::from_micros(1)));
                while before < until {
                    let now = Instant::now();
                    floor = floor.max(now - before);
                    before = now;
                }
                (longest, asked) = (longest.max(end - start), asked + 1);
            }
            (longest, floor, asked)
        });
        let start = Instant::now();
        for number in 1..=4 {
            let next = ruleset(&text(number as u32 + 1));
            assert_eq!(published.replace(number, next), Ok(number + 1));
        }
        let took = start.elapsed() / 4;
        done.store(true, Relaxed);
        let (longest, floor, asked) = reader.join().unwrap();
        println!(
            "{rules} rules: a commit {took:?}; asked for the current program {asked} times, waited {longest:?} at \
             most; with the clock alone {floor:?}"
        );
    });
}

#[test]
fn what_is_not_accepted_is_not_published() {
    let published = published(START);
    let text = "*mangle\n-A PREROUTING -p tcp\nCOMMIT\n";
    let no = published.commit_text_if(1, Family::Ipv4, text, |next| {
        assert_eq!(next.number(), 2);
        Err("it opens a port".to_owned())
    });
    assert_eq!(no, Err(PublishError::NotAccepted("it opens a port".to_owned())));
    assert_eq!(published.program().number(), 1);
    assert_eq!(rules(&published.program()).rules().count(), 1);
    let places = published.held().places;
    for _ in 0..100 {
        let no = published.replace_if(1, vec![ruleset(START)], |next| next, |_| Err(String::new()));
        assert!(no.is_err());
    }
    assert_eq!(change(&published, "-A PREROUTING -p tcp"), 2);
    assert_eq!(published.held().places, places + 1, "what was refused has given its places back");
}
