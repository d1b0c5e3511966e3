//! What becomes of frames by their verdicts, and of frames that a middlebox rewrites, lengthens or shortens.

use live::config::{OnError, Side, Slot};
use live::{Descriptor, Middlebox, Reason, Verdict, Waiting};
use proptest::prelude::*;

use super::super::{filter, syn};
use super::{Each, Job, Left, Ports};

/// A number of its own in each frame's port.
fn frames(count: u16) -> Vec<Vec<u8>> {
    (0..count).map(syn).collect()
}

/// The port that [`syn`] wrote.
fn port(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[36], bytes[37]])
}

/// Any verdict, as good as drawn.
fn verdict(number: u64) -> Verdict {
    match number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61 {
        0..=3 => Verdict::Pass,
        4 => Verdict::Drop,
        5 => Verdict::Back,
        _ => Verdict::Error,
    }
}

/// Checks the result of a list of frames and their verdicts.
fn check(left: &Left, frames: &[Vec<u8>], verdict: impl Fn(&[u8]) -> Verdict, on_error: OnError) {
    let of = |wanted: &[Verdict]| -> Vec<Vec<u8>> {
        frames.iter().filter(|bytes| wanted.contains(&verdict(bytes))).cloned().collect()
    };
    let (goes, failed) = match on_error {
        OnError::Pass => (of(&[Verdict::Pass, Verdict::Error]), 0),
        OnError::Drop => (of(&[Verdict::Pass]), of(&[Verdict::Error]).len() as u64),
    };
    assert!(left.frames == [of(&[Verdict::Back]), goes.clone()]);
    let counted = left.counted(0);
    assert_eq!(counted.of(Reason::Middlebox), of(&[Verdict::Drop]).len() as u64);
    assert_eq!(counted.of(Reason::Handler), failed);
    assert_eq!(counted.sent, (goes.len() + left.frames[0].len()) as u64);
    let bytes = left.frames.iter().flatten().map(|bytes| bytes.len() as u64).sum::<u64>();
    assert_eq!(counted.sent_bytes, bytes);
}

#[test]
fn each_frame_goes_where_its_verdict_says() {
    let frames = frames(700);
    let job = Job::new(&filter("ACCEPT", ""), frames.clone());
    for side in [Side::After, Side::Before] {
        for on_error in [OnError::Drop, OnError::Pass] {
            for ports in [Ports::Recorded, Ports::OpenWire] {
                let job = Job { slot: Slot { side, on_error }, ports, ..job.clone() };
                let by_port = |bytes: &[u8]| verdict(port(bytes).into());
                let left = job.with(|| Each(move |bytes: &mut [u8], _| by_port(bytes)));
                check(&left, &frames, by_port, on_error);
            }
        }
    }
}

/// A descriptor has the number of its frame on its port.
#[test]
fn descriptors_say_the_same() {
    let frames = frames(700);
    let job = Job { ports: Ports::OpenWire, ..Job::new(&filter("ACCEPT", ""), frames.clone()) };
    let judge = |shown: &mut [Descriptor]| {
        for descriptor in shown {
            descriptor.verdict = verdict(descriptor.number) as u8;
        }
    };
    let by_number = |bytes: &[u8]| verdict(u64::from(port(bytes)) + 1);
    for burst in [1, 13, 256] {
        let left = job.hosted(burst, judge);
        check(&left, &frames, by_number, OnError::Drop);
    }
}

/// A frame that both would drop is dropped by the rules where they come first, and by the middlebox where it does.
#[test]
fn a_frame_is_dropped_once() {
    let job = Job::new(&filter("DROP", ""), frames(20));
    for (side, policy, middlebox) in [(Side::After, 20, 0), (Side::Before, 0, 20)] {
        let job = Job { slot: Slot { side, ..Slot::default() }, ..job.clone() };
        let left = job.with(|| Each(|_: &mut [u8], _| Verdict::Drop));
        let counted = left.counted(0);
        let found = (counted.of(Reason::Policy), counted.of(Reason::Middlebox));
        assert_eq!(found, (policy, middlebox), "{side:?}");
    }
}

/// Rules see what is rewritten before them; what is rewritten after them leaves.
#[test]
fn rewritten_bytes_leave() {
    let text = filter("DROP", "-A FORWARD -p tcp --dport 7 -j ACCEPT\n");
    let rewrite = |to: u16| {
        move || {
            Each(move |bytes: &mut [u8], _| {
                bytes[36..38].copy_from_slice(&to.to_be_bytes());
                Verdict::Pass
            })
        }
    };
    let before =
        Job { slot: Slot { side: Side::Before, ..Slot::default() }, ..Job::new(&text, frames(20)) };
    assert_eq!(before.with(rewrite(7)).frames[1].len(), 20);
    assert_eq!(before.with(rewrite(8)).frames[1].len(), 0);
    let after = Job::new(&text, frames(20)).with(rewrite(8));
    assert!(after.frames[1].len() == 1 && port(&after.frames[1][0]) == 8);
}

/// Makes frames longer or shorter by these numbers of bytes, where there is room, and writes what is new.
struct Shapes(Vec<(isize, isize)>);

/// A byte that no frame of these tests has.
const NEW: u8 = 0xee;

impl Middlebox for Shapes {
    fn burst(&mut self, frames: &mut Waiting) {
        // What one gives up, the one before it does not have.
        for at in (0..frames.len()).rev() {
            let number = port(frames.frames().nth(at).expect("a frame").bytes);
            let (front, back) = self.0[usize::from(number) % self.0.len()];
            let is_reshaped = frames.reshape(at, front, back);
            let shown = frames.frames().nth(at).expect("a frame");
            if !is_reshaped {
                *shown.verdict = Verdict::Error;
                continue;
            }
            let len = shown.bytes.len();
            shown.bytes[..front.min(0).unsigned_abs().min(len)].fill(NEW);
            shown.bytes[len - back.max(0).unsigned_abs().min(len)..].fill(NEW);
        }
    }
}

/// The expected bytes of one frame.
fn shaped(frame: &[u8], (front, back): (isize, isize)) -> Vec<u8> {
    let whole = [&[NEW; 70], frame, &[NEW; 100]].concat();
    whole[(70 + front) as usize..(70 + frame.len() as isize + back) as usize].to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Frames in memory of their own have 64 bytes before them, and more than 1900 after them.
    #[test]
    fn frames_become_longer_and_shorter(
        shapes in prop::collection::vec((-70_isize..60, -60_isize..100), 1..9),
        ports in prop::sample::select(vec![Ports::Recorded, Ports::OpenWire]),
    ) {
        let frames = frames(100);
        let job = Job { ports, ..Job::new(&filter("ACCEPT", ""), frames.clone()) };
        let left = job.with(|| Shapes(shapes.clone()));
        let len = frames[0].len() as isize;
        let room = |at: usize, (front, back): (isize, isize)| match ports {
            Ports::OpenWire => front >= -64,
            // In a burst of a recording there is nothing between frames, but after the last one there is.
            Ports::Recorded => front >= 0 && (back <= 0 || at % 48 == 47 || at == 99),
        };
        let fits = |at: usize, shape: (isize, isize)| {
            room(at, shape) && len - shape.0 + shape.1 >= 14 && shape.0 <= len
        };
        let shape = |at: usize| shapes[at % shapes.len()];
        let fitting = frames.iter().enumerate().filter(|(at, _)| fits(*at, shape(*at)));
        let expected: Vec<_> = fitting.map(|(at, frame)| shaped(frame, shape(at))).collect();
        prop_assert_eq!(left.counted(0).of(Reason::Handler), 100 - expected.len() as u64);
        prop_assert!(left.frames[1] == expected);
    }
}
