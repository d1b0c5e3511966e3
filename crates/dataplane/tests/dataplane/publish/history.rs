//! Workers walk while a writer publishes thousands of programs and a reader takes snapshots.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread;

use dataplane::publish::{Published, Snapshot};
use rules::eval::Verdict;
use rules::model::{Family, Hook, Rule};

use super::{BYTES, Stops, change, published, rules, walk};

const REVISIONS: u64 = 4000;

/// The first rule marks packets with the program's number; the last rule of another chain, beyond a segment, drops
/// packets that have another mark: any mix of two programs drops.
fn start() -> String {
    let mut text = "*mangle\n:PREROUTING ACCEPT [0:0]\n:last - [0:0]\n".to_owned();
    text += "-A PREROUTING -j MARK --set-xmark 0x1\n-A PREROUTING -j last\n";
    for filler in 0..1500 {
        writeln!(text, "-A last -s 192.0.{}.{}", filler / 256, filler % 256).unwrap();
    }
    text + "-A last -p udp\n-A last -m mark ! --mark 0x1 -j DROP\nCOMMIT\n"
}

fn next(number: u64) -> String {
    format!(
        "-R PREROUTING 1 -j MARK --set-xmark {number:#x}\n\
         -R last 1502 -m mark ! --mark {number:#x} -j DROP"
    )
}

/// Packets by the program that evaluated them.
fn work(
    published: &Published,
    stop: &AtomicBool,
    done: &AtomicU64,
    bursts_each: usize,
) -> HashMap<u64, u64> {
    let _stops = Stops(stop);
    let mut seen: HashMap<u64, u64> = HashMap::new();
    let mut last = 0;
    while !stop.load(Ordering::Relaxed) {
        let mut worker = published.worker();
        for _ in 0..bursts_each {
            let mut burst = worker.burst();
            let number = burst.program().number();
            assert!(number >= last, "{number} after {last}");
            last = number;
            for _ in 0..8 {
                assert_eq!(walk(&mut burst), (Some(Verdict::Accept), number as u32));
                *seen.entry(number).or_default() += 1;
            }
            drop(burst);
            done.fetch_add(8, Ordering::SeqCst);
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
    }
    seen
}

/// Every packet hits the jump, the rule for UDP and the policy: each as often, with all its bytes.
fn is_consistent(snapshot: &Snapshot) -> u64 {
    let counts = |chain, number| {
        let rule = rules(&snapshot.program).rule("mangle", chain, number).unwrap();
        snapshot.rule(rule)
    };
    let jump = counts("PREROUTING", 1);
    assert_eq!(jump.bytes, jump.packets * BYTES);
    assert_eq!(counts("last", 1500), jump);
    assert_eq!(snapshot.policy(Family::Ipv4, "mangle", Hook::Prerouting), jump);
    assert!(counts("PREROUTING", 0).packets <= jump.packets);
    jump.packets
}

/// Each has what was done before it was asked for.
fn read(published: &Published, stop: &AtomicBool, done: &AtomicU64) -> usize {
    let _stops = Stops(stop);
    let (mut last, mut taken) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let done = done.load(Ordering::SeqCst);
        let packets = is_consistent(&published.snapshot().unwrap());
        assert!(packets >= last && packets >= done, "{packets} after {last} or {done}");
        (last, taken) = (packets, taken + 1);
    }
    taken
}

/// The rules that each program had of its own.
fn publish(published: &Published, stop: &AtomicBool) -> Vec<Weak<Rule>> {
    let _stops = Stops(stop);
    let mut all = Vec::new();
    for number in 2..=REVISIONS {
        let program = published.program();
        let rule = rules(&program).rule("mangle", "PREROUTING", 0).unwrap();
        all.push(Arc::downgrade(rule));
        drop(program);
        assert_eq!(change(published, &next(number)), number);
    }
    all
}

#[test]
fn no_packet_sees_two_programs_and_every_one_counts_once() {
    let published = published(&start());
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let resting = published.worker();
    let (seen, snapshots, all) = thread::scope(|scope| {
        let worker = |bursts| {
            scope.spawn({
                let (published, stop, done) = (&published, &stop, &done);
                move || work(published, stop, done, bursts)
            })
        };
        let workers = [worker(usize::MAX), worker(usize::MAX), worker(5)];
        let reader = scope.spawn(|| read(&published, &stop, &done));
        let all = publish(&published, &stop);
        let mut seen: HashMap<u64, u64> = HashMap::new();
        for worker in workers {
            for (number, packets) in worker.join().unwrap() {
                *seen.entry(number).or_default() += packets;
            }
        }
        (seen, reader.join().unwrap(), all)
    });
    let snapshot = published.snapshot().unwrap();
    assert_eq!(is_consistent(&snapshot), seen.values().sum::<u64>());
    let last = rules(&snapshot.program).rule("mangle", "PREROUTING", 0).unwrap();
    assert_eq!(snapshot.rule(last).packets, seen.get(&REVISIONS).copied().unwrap_or(0));
    assert!(seen.len() > 10, "workers saw {} programs", seen.len());
    assert!(snapshots > 1, "{snapshots} snapshots");
    // The resting worker holds on to nothing.
    let held = all.iter().filter(|rule| rule.strong_count() > 0).count();
    change(&published, &next(REVISIONS + 1));
    let left = all.iter().filter(|rule| rule.strong_count() > 0).count();
    assert_eq!(left, 0, "{held} before the last commit");
    drop(resting);
}
