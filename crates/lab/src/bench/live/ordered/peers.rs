//! The engines `mutex` and `conventional`: what the study built, and what it was measured by.
//!
//! Source: the study of a tunnel's end, its slides 14 and 15: a staging thread stores the order of packets, a pool of
//! workers processes each under a mutex of the packet's own, a sending thread takes packets in their order and waits
//! for each one's mutex. Before, one thread did everything.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use crossbeam_channel::bounded;

use super::load::{BURST, Left, Load, Packet, Sink, Source, before_others, soon};

/// Packets between staging and sending: as many as a lane holds.
const ROOM: usize = 16 * BURST;

/// A packet that is processed by one thread while another one waits to send it.
struct Job {
    packet: Packet,
    is_processed: Mutex<bool>,
    processed: Condvar,
}

/// A staging thread, a pool and a sending thread.
pub(super) fn mutex(load: Load, pool: usize) -> Left {
    let start = soon();
    let (jobs, work) = bounded::<Arc<Job>>(ROOM);
    let (order, sending) = bounded::<Arc<Job>>(ROOM);
    thread::scope(|scope| {
        let staging = scope.spawn(move || {
            before_others(load.pace);
            let mut source = Source::new(load.pace, start);
            let mut burst = Vec::new();
            while !source.is_over() {
                source.take(&mut burst);
                for packet in burst.drain(..) {
                    let (is_processed, processed) = (Mutex::new(false), Condvar::new());
                    let job = Arc::new(Job { packet, is_processed, processed });
                    if order.send(Arc::clone(&job)).is_err() || jobs.send(job).is_err() {
                        return source;
                    }
                }
            }
            source
        });
        for _ in 0..pool {
            let work = work.clone();
            scope.spawn(move || {
                before_others(load.pace);
                for job in work {
                    let mut is_processed =
                        job.is_processed.lock().unwrap_or_else(PoisonError::into_inner);
                    load.work.on(&job.packet);
                    *is_processed = true;
                    drop(is_processed);
                    job.processed.notify_one();
                }
            });
        }
        before_others(load.pace);
        let mut sink = Sink::new(load.work, start);
        for job in sending {
            let is_processed = job.is_processed.lock().unwrap_or_else(PoisonError::into_inner);
            let done = job.processed.wait_while(is_processed, |is_processed| !*is_processed);
            drop(done);
            sink.send(&[job.packet]);
        }
        let source = staging.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        sink.left(&source, 0)
    })
}

/// One thread.
pub(super) fn conventional(load: Load) -> Left {
    let start = soon();
    let run = move || {
        before_others(load.pace);
        let (mut source, mut sink) = (Source::new(load.pace, start), Sink::new(load.work, start));
        let mut burst = Vec::new();
        while !source.is_over() {
            source.take(&mut burst);
            burst.iter().for_each(|packet| load.work.on(packet));
            sink.send(&burst);
            burst.clear();
        }
        sink.left(&source, 0)
    };
    thread::scope(|scope| {
        scope.spawn(run).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
