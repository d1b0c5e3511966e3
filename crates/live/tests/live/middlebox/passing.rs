//! A middlebox that has everything pass changes nothing: neither what leaves nor what is counted.

use std::sync::{Arc, Mutex};

use live::config::{OnError, Side, Slot};
use live::{Descriptor, Verdict};
use packet::craft::Message;
use proptest::prelude::*;

use super::super::workers::{STATELESS, TRACKED, by_flow, conversations};
use super::super::{craft, filter};
use super::{Each, Job, Left, Ports, passes};

const REJECTING: &str = "-A FORWARD -p udp --dport 53 -j REJECT\n\
    -A FORWARD -p tcp --dport 80 -j REJECT --reject-with tcp-reset\n-A FORWARD -p icmp -j ACCEPT\n";

/// The kind of the rules.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rules {
    Stateless,
    /// Connections, and fragments that are put together.
    Tracked,
    Translating,
    Rejecting,
    /// No rule is for any frame.
    Unseen,
}

fn job(rules: Rules, seed: u64) -> Job {
    let nat = "*nat\n:POSTROUTING ACCEPT [0:0]\n\
        -A POSTROUTING -s 10.0.0.0/24 -j SNAT --to-source 192.0.2.1\nCOMMIT\n";
    let (text, seen_as) = match rules {
        Rules::Stateless | Rules::Unseen => (filter("DROP", STATELESS), None),
        Rules::Tracked => (filter("DROP", TRACKED), None),
        Rules::Translating => (format!("{nat}{}", filter("DROP", TRACKED)), Some([192, 0, 2, 1])),
        Rules::Rejecting => (filter("DROP", REJECTING), None),
    };
    let mut frames = conversations(seed, seen_as);
    frames.truncate(1500);
    // What comes the other way, at the same time.
    let mut back: Vec<_> = frames.iter().rev().take(400).cloned().collect();
    if rules == Rules::Rejecting {
        // Replies do not wait: among frames of the other direction they may stand elsewhere.
        back.clear();
    }
    let mut job = Job { frames: [frames, back], ..Job::new(&text, Vec::new()) };
    if rules == Rules::Unseen {
        let all = job.frames.iter_mut().flatten();
        all.for_each(|bytes| bytes[12..14].copy_from_slice(&[0x88, 0xb5]));
    }
    job
}

/// Both say the same: of one worker in the same order, of several within each flow.
fn same(found: Left, expected: Left, job: &Job) -> Result<(), TestCaseError> {
    prop_assert!(found.ended.is_ok(), "{:?}", found.ended);
    for from in [0, 1] {
        let [mut found, mut expected] = [&found, &expected].map(|left| *left.counted(from));
        // How often frames moved is a matter of who put fragments together when.
        (found.taken_over, expected.taken_over) = (0, 0);
        prop_assert_eq!(found, expected);
    }
    for (found, expected) in found.frames.into_iter().zip(expected.frames) {
        if job.workers == 1 {
            let differs = found.iter().zip(&expected).position(|(one, other)| one != other);
            prop_assert_eq!((found.len(), differs), (expected.len(), None));
        } else {
            prop_assert!(by_flow(found) == by_flow(expected));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_passes_is_as_it_was(
        rules in prop::sample::select(vec![
            Rules::Stateless, Rules::Tracked, Rules::Translating, Rules::Rejecting, Rules::Unseen,
        ]),
        side in prop::sample::select(vec![Side::After, Side::Before]),
        on_error in prop::sample::select(vec![OnError::Drop, OnError::Pass]),
        ports in prop::sample::select(vec![Ports::Recorded, Ports::OpenWire]),
        workers in 1_usize..=2,
        how in prop::sample::select(vec![
            How::Own, How::Hosted(1), How::Hosted(7), How::Hosted(256),
            How::Ringed(1, 1), How::Ringed(50, 7), How::Ringed(100, 256), How::Ringed(8192, 64),
        ]),
        seed in 0..1000_u64,
    ) {
        // Replies have a rate for each worker, and frames without a rule for them stay with their receiver. What a live
        // worker has no room for is dropped.
        let is_shared = ports == Ports::Recorded && !matches!(rules, Rules::Rejecting | Rules::Unseen);
        let workers = if is_shared { workers } else { 1 };
        let slot = Slot { side, on_error };
        let job = Job { ports, workers, slot, ..job(rules, seed) };
        let expected = job.alone();
        prop_assert!(expected.frames[1].len() > 50, "something passes");
        let found = match how {
            How::Own => job.with(passes),
            How::Hosted(burst) => job.hosted(burst, |_: &mut [_]| {}),
            // A live port loses what there is no room for.
            How::Ringed(_, burst) if ports == Ports::OpenWire => job.ringed(8192, burst, |_: &mut [_]| {}),
            How::Ringed(room, burst) => job.ringed(room, burst, |_: &mut [_]| {}),
        };
        same(found, expected, &job)?;
    }
}

/// The way in which frames are shown, and how many at a time.
#[derive(Debug, Clone, Copy)]
enum How {
    Own,
    Hosted(usize),
    /// With room for this number of frames.
    Ringed(usize, usize),
}

/// With `on_error = "pass"` a middlebox that fails over every frame passes every frame.
#[test]
fn errors_may_pass() {
    let slot = Slot { on_error: OnError::Pass, ..Slot::default() };
    let job = Job { slot, ..job(Rules::Tracked, 7) };
    let found = job.hosted(64, |shown: &mut [Descriptor]| {
        shown.iter_mut().for_each(|descriptor| descriptor.verdict = Verdict::Error as u8);
    });
    same(found, job.alone(), &job).unwrap();
}

/// Frames that are whole are unchanged: a middlebox sees the frames of its side of the rules, each once.
#[test]
fn after_the_rules_it_sees_what_leaves_and_before_them_what_comes() {
    let [accepted, dropped] = [80, 81].map(|port| {
        craft(["10.0.0.7", "10.0.0.9"], Message::tcp(4000, port, packet::tcp::Flags::SYN)).frame()
    });
    let frames = vec![accepted.clone(), dropped.clone(), accepted.clone()];
    let text = filter("DROP", "-A FORWARD -p tcp --dport 80 -j ACCEPT\n");
    let job = Job::new(&text, frames.clone());
    for (side, expected) in [
        (Side::After, &[&frames[0], &frames[2]][..]),
        (Side::Before, &[&frames[0], &frames[1], &frames[2]]),
    ] {
        let seen = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        let job = Job { slot: Slot { side, ..Slot::default() }, ..job.clone() };
        let left = job.with(|| {
            let seen = Arc::clone(&seen);
            Each(move |bytes: &mut [u8], _| {
                seen.lock().unwrap().push(bytes.to_vec());
                Verdict::Pass
            })
        });
        assert!(seen.lock().unwrap().iter().eq(expected.iter().copied()), "{side:?}");
        assert_eq!(left.frames[1], [accepted.clone(), accepted.clone()]);
    }
}
