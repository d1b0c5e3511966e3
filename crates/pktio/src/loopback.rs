//! A port in memory: what is transmitted into it is received from it, in order.
//!
//! Contract: frames are copied in and out; holds at most as many as it was made for. For tests, and for
//! frames that are made rather than captured.

use std::collections::VecDeque;

use crate::burst::Burst;
use crate::frame::FrameMeta;
use crate::port::{Port, PortError, Stats};

/// A queue of frames with the face of a port.
#[derive(Debug)]
pub struct LoopbackPort {
    queue: VecDeque<(Vec<u8>, FrameMeta)>,
    /// Frames the queue holds at most.
    capacity: usize,
    /// Frames handed over at once.
    burst_frames: usize,
    stats: Stats,
}

impl LoopbackPort {
    /// An empty port that holds `capacity` frames and hands over `burst_frames` of them (at least one) at
    /// a time.
    pub fn new(capacity: usize, burst_frames: usize) -> Self {
        let burst_frames = burst_frames.max(1);
        Self { queue: VecDeque::new(), capacity, burst_frames, stats: Stats::default() }
    }
}

impl Port for LoopbackPort {
    /// The oldest frames, numbered in the order in which they are received.
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        let waiting = self.queue.len().min(self.burst_frames);
        for (bytes, meta) in self.queue.drain(..waiting) {
            self.stats.rx_frames += 1;
            self.stats.rx_bytes += bytes.len() as u64;
            burst.push(&bytes, FrameMeta { number: self.stats.rx_frames, ..meta });
        }
        Ok(burst.len())
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let taken = burst.len().min(self.capacity - self.queue.len());
        for frame in burst.iter().take(taken) {
            self.stats.tx_frames += 1;
            self.stats.tx_bytes += frame.bytes.len() as u64;
            self.queue.push_back((frame.bytes.to_vec(), *frame.meta));
        }
        self.stats.tx_full += (burst.len() - taken) as u64;
        Ok(taken)
    }

    fn stats(&self) -> Stats {
        self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_in_order_and_a_full_queue_takes_no_more() {
        let mut sent = Burst::new();
        for byte in 0..5 {
            sent.push(&[byte; 3], FrameMeta::default());
        }
        let mut port = LoopbackPort::new(4, 3);
        assert_eq!(port.tx_burst(&mut sent).unwrap(), 4);
        let mut received = Burst::new();
        let mut bytes = Vec::new();
        while port.rx_burst(&mut received).unwrap() > 0 {
            assert!(received.len() <= 3);
            bytes.extend(received.iter().map(|frame| (frame.meta.number, frame.bytes[0])));
        }
        assert_eq!(bytes, [(1, 0), (2, 1), (3, 2), (4, 3)]);
        let stats = port.stats();
        assert_eq!((stats.tx_frames, stats.tx_full, stats.rx_bytes), (4, 1, 12));
    }
}
