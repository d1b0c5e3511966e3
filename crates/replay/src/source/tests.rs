use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use pktio::pcap_file::NgWriter;
use pktio::{Frame, FrameMeta, Interface, LinkType, Timestamp};
use proptest::prelude::*;

use super::stream::ReadOf;
use super::*;
use crate::Selection;
use crate::batch::Batch;
use conntrack::SECOND;

const START: u64 = 1_700_000_000 * SECOND;

/// A directory of captures that goes with the test.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("tamis-stream-{}-{count}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    /// A capture of frames of four bytes with these times after the start.
    fn capture(&self, name: &str, frames: &[(Option<u64>, u32)]) -> String {
        let path = self.0.join(name);
        let mut writer = NgWriter::new(fs::File::create(&path).unwrap()).unwrap();
        let link_type = LinkType::RAW;
        let interface = Interface { link_type, ..Interface::default() };
        writer.add_interface(&interface).unwrap();
        for (time, word) in frames {
            let timestamp = time.map(|time| Timestamp::from_nanos((START + time) as i64));
            let meta = FrameMeta { timestamp, wire_length: 4, link_type, ..FrameMeta::default() };
            writer.write(0, Frame { bytes: &word.to_be_bytes(), meta: &meta }, None).unwrap();
        }
        writer.finish().unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What was read: word, number as printed without its directory, time after the start.
fn read(captures: &[String]) -> (Vec<(u32, String, Option<u64>)>, ReadOf) {
    read_by(captures, Selection::default())
}

/// Reads what a selection leaves, as [`read`] reads all.
fn read_by(captures: &[String], selection: Selection) -> (Vec<(u32, String, Option<u64>)>, ReadOf) {
    let numbers = Numbers::of(captures);
    let reading = Reading { selection, ..Reading::default() };
    let mut source = Source::new(captures, None, reading);
    let (mut batch, mut all) = (Batch::default(), Vec::new());
    while source.next(&mut batch).unwrap() {
        for (frame, arrived) in batch.burst.iter().zip(&batch.arrived) {
            let number = numbers.show(arrived.number).to_string();
            let number = number.rsplit('/').next().unwrap().to_owned();
            let word = u32::from_be_bytes(frame.bytes.try_into().unwrap());
            all.push((word, number, arrived.time.map(|time| time - START)));
        }
    }
    (all, source.read)
}

fn words(captures: &[String]) -> Vec<u32> {
    read(captures).0.into_iter().map(|(word, ..)| word).collect()
}

fn timed(frames: &[(u64, u32)]) -> Vec<(Option<u64>, u32)> {
    frames.iter().map(|(time, word)| (Some(*time), *word)).collect()
}

#[test]
fn captures_that_overlap_are_merged_and_numbered_as_recorded() {
    let dir = Dir::new();
    let a = dir.capture("a", &timed(&[(0, 1), (2_000, 3), (2_000, 4), (9_000, 7)]));
    let b = dir.capture("b", &timed(&[(1_000, 2), (2_000, 5), (3_000, 6)]));
    let (all, of) = read(&[a.clone(), b.clone()]);
    let shown: Vec<_> = all.iter().map(|(word, number, _)| (*word, number.as_str())).collect();
    let wanted =
        [(1, "a:1"), (2, "b:1"), (3, "a:2"), (4, "a:3"), (5, "b:2"), (6, "b:3"), (7, "a:4")];
    assert_eq!(shown, wanted);
    assert_eq!((of.backwards, of.time_went_back, of.by_time), (0, 0, false));
    // Equal times keep the order of the arguments.
    assert_eq!(words(&[b, a]), [1, 2, 5, 3, 4, 6, 7]);
}

#[test]
fn captures_that_follow_each_other_do_so_by_time_and_it_is_said() {
    let dir = Dir::new();
    let old = dir.capture("old", &timed(&[(0, 1), (SECOND, 2)]));
    let new = dir.capture("new", &timed(&[(90 * SECOND, 3), (91 * SECOND, 4)]));
    let (all, of) = read(&[new.clone(), old.clone()]);
    assert_eq!(all.iter().map(|(word, ..)| *word).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(of.by_time);
    assert_eq!(of.packets_of_each(), [2, 2]);
    assert!(!read(&[old, new]).1.by_time);
}

#[test]
fn a_frame_out_of_order_is_put_in_order_and_one_too_late_is_clamped() {
    let dir = Dir::new();
    let near =
        dir.capture("near", &timed(&[(0, 1), (2 * SECOND, 3), (SECOND, 2), (3 * SECOND, 4)]));
    let (all, of) = read(&[near]);
    assert_eq!(all.iter().map(|(word, ..)| *word).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(all[1].1, "3", "numbers are those of the file");
    assert_eq!((of.backwards, of.time_went_back), (1, 0));
    // So many frames that the first ones are handed out before the last one is read.
    let mut frames: Vec<_> = (0..200_000).map(|at| (u64::from(at) * 10_000, at)).collect();
    frames.push((0, 200_000));
    let (all, of) = read(&[dir.capture("far", &timed(&frames))]);
    assert_eq!(all.len(), 200_001);
    assert!(all.is_sorted_by_key(|(_, _, time)| *time));
    assert_eq!((of.backwards, of.time_went_back), (1, 1));
}

#[test]
fn a_frame_without_a_time_has_that_of_the_one_before() {
    let dir = Dir::new();
    let mixed = [(None, 1), (Some(5), 2), (None, 3), (Some(9), 4)];
    // The writer has no block without a time: such frames are written by hand.
    let path = dir.0.join("mixed");
    let mut bytes: Vec<u8> = Vec::new();
    let block = |bytes: &mut Vec<u8>, kind: u32, body: &[u32]| {
        let length = 12 + 4 * body.len() as u32;
        let words = [&[kind, length], body, &[length]].concat();
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    };
    block(&mut bytes, 0x0a0d_0d0a, &[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]);
    // Raw packets; times in nanoseconds.
    block(&mut bytes, 1, &[101, 0, 1 << 16 | 9, 9, 0]);
    for (time, word) in mixed {
        let word = u32::from_be(word);
        match time.map(|time: u64| START + time) {
            Some(time) => {
                block(&mut bytes, 6, &[0, (time >> 32) as u32, time as u32, 4, 4, word]);
            }
            None => block(&mut bytes, 3, &[4, word]),
        }
    }
    fs::write(&path, bytes).unwrap();
    let (all, of) = read(&[path.to_str().unwrap().to_owned()]);
    let shown: Vec<_> = all.iter().map(|(word, _, time)| (*word, *time)).collect();
    assert_eq!(shown, [(1, Some(5)), (2, Some(5)), (3, Some(5)), (4, Some(9))]);
    assert_eq!(of.time_went_back, 0);
}

#[test]
fn an_interface_is_named_and_each_capture_keeps_its_own() {
    let dir = Dir::new();
    let a = dir.capture("a", &timed(&[(0, 1), (2, 3)]));
    let b = dir.capture("b", &timed(&[(1, 2)]));
    let captures = [format!("lan0={a}"), format!("wan0={b}")];
    let mut source = Source::new(&captures, None, Reading::default());
    let (mut batch, mut names) = (Batch::default(), Vec::new());
    while source.next(&mut batch).unwrap() {
        names.extend(batch.burst.iter().map(|frame| {
            batch.stream.interfaces[frame.meta.interface as usize].name.clone().unwrap()
        }));
    }
    assert_eq!(names, ["lan0", "wan0", "lan0"]);
}

proptest! {
    #[test]
    fn any_split_of_a_capture_merges_back(
        steps in prop::collection::vec((0_u64..3_000_000, 0_usize..3), 1..400),
    ) {
        let dir = Dir::new();
        let mut files = vec![Vec::new(); 3];
        let mut whole = Vec::new();
        let mut time = 0;
        for ((step, file), word) in steps.into_iter().zip(0..) {
            // No two times are equal: then the order is that of the files.
            time += step + 1;
            files[file].push((Some(time), word));
            whole.push(word);
        }
        let names: Vec<_> =
            files.iter().zip(["a", "b", "c"]).map(|(file, name)| dir.capture(name, file)).collect();
        prop_assert_eq!(words(&names), whole);
    }

    /// Runs are counted at once where all of their frames are evaluated, and frame by frame where some might not be.
    #[test]
    fn a_run_counts_as_its_frames_do(
        steps in prop::collection::vec((0_u64..SECOND, 0_u64..4, 0_usize..2), 1..200),
    ) {
        let dir = Dir::new();
        let mut files = vec![Vec::new(); 2];
        let mut time = 3 * SECOND;
        for ((step, back, file), word) in steps.into_iter().zip(0..) {
            time += step;
            // Most are in order, some too late to be put in order.
            let late = if back == 3 { 3 * SECOND } else { 0 };
            files[file].push((Some(time - late), word));
        }
        let names: Vec<_> =
            files.iter().zip(["a", "b"]).map(|(file, name)| dir.capture(name, file)).collect();
        let all = Selection { count: Some(u64::MAX), ..Selection::default() };
        let ((runs, of_runs), (frames, of_frames)) = (read(&names), read_by(&names, all));
        prop_assert_eq!(runs, frames);
        prop_assert_eq!(format!("{of_runs:?}"), format!("{of_frames:?}"));
    }

    #[test]
    fn disorder_within_the_window_is_mended(
        frames in prop::collection::vec((0_u64..10_000, 0_u64..10_000_000), 1..2000),
    ) {
        // Each frame is up to 10 ms late.
        let mut frames: Vec<_> = frames.into_iter().zip(0_u32..).collect();
        let mut at = 0;
        let mut sent: Vec<_> = frames.drain(..).map(|((step, late), word)| {
            at += step;
            (at, at + late, word)
        }).collect();
        let by_time: Vec<_> = sent.iter().map(|(_, _, word)| *word).collect();
        sent.sort_by_key(|(_, arrival, _)| *arrival);
        let frames: Vec<_> = sent.iter().map(|(time, _, word)| (Some(*time), *word)).collect();
        let dir = Dir::new();
        let (all, of) = read(&[dir.capture("late", &frames)]);
        prop_assert!(all.is_sorted_by_key(|(_, _, time)| *time));
        prop_assert_eq!(of.time_went_back, 0);
        let mut words: Vec<_> = all.iter().map(|(word, ..)| *word).collect();
        words.sort_unstable();
        let mut wanted = by_time;
        wanted.sort_unstable();
        prop_assert_eq!(words, wanted);
    }
}
