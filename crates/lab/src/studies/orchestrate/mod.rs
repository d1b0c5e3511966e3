//! Ways to share the work of a stream in which config packets change what data packets are decided by.
//!
//! One serial source, at most [`IN_FLIGHT`] packets between source and end, workers that park when there is
//! nothing to do. What a model promises about order is [`Orchestration::may_overtake`].
//!
//! Contract: a run ends when the source has ended and every packet has; nothing of it is left behind. One in which a
//! thread panics is given up: nothing is taken from the source any more, and its error is the panic's message. Each
//! model's file says who holds what.

mod in_flight;
mod meter;
mod ordered;
mod partial_pipeline;
mod phased_pipeline;
mod serial;
pub mod sink;
pub mod source;
mod stream;
mod sync;
mod task_pool;
mod worker_pool;
mod workers;

use std::time::Instant;

use engines::{Address, Engine};

use in_flight::InFlight;
pub use meter::{Latencies, Meter, Outcome};
pub use sink::{Bins, Histogram, Sink};
pub use source::{Ahead, Serial, Source, Trace};
pub use worker_pool::per_worker_source;
pub use workers::IN_FLIGHT;
use workers::{Panicked, Run};

/// How work is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Orchestration {
    /// One thread does all.
    Serial,
    /// A dispatcher puts tasks of `packets` packets on one queue that all workers take from.
    TaskPool {
        /// Packets of a task.
        packets: usize,
    },
    /// Each worker takes its next packets from the source by itself.
    WorkerPool,
    /// Likewise one packet at a time, all counted in one atomic counter: the second study's threads.
    OneByOne,
    /// Some workers apply config packets and hand data packets round to others, one queue each.
    PartialPipeline {
        /// Workers for config packets; the others decide.
        config: usize,
    },
    /// Some workers decide and change, others do the work of permitted packets.
    PhasedPipeline {
        /// Workers that decide and change; the others collect.
        control: usize,
    },
    /// A parallel stream (rayon) over the source.
    Stream,
    /// One thread decides and changes in order, workers do the work, packets leave in order.
    Ordered,
}

impl Orchestration {
    /// All of them: tasks of `task` packets, `split` workers before the others in a pipeline.
    #[must_use]
    pub fn all(task: usize, split: usize) -> [Self; 8] {
        [
            Self::Serial,
            Self::TaskPool { packets: task },
            Self::WorkerPool,
            Self::OneByOne,
            Self::PartialPipeline { config: split },
            Self::PhasedPipeline { control: split },
            Self::Stream,
            Self::Ordered,
        ]
    }

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::TaskPool { .. } => "task_pool",
            Self::WorkerPool => "worker_pool",
            Self::OneByOne => "one_by_one",
            Self::PartialPipeline { .. } => "partial_pipeline",
            Self::PhasedPipeline { .. } => "phased_pipeline",
            Self::Stream => "stream",
            Self::Ordered => "ordered",
        }
    }

    /// Whether a data packet may be decided before a config packet that came before it is applied. It
    /// is never more than the packets in flight that it overtakes.
    #[must_use]
    pub fn may_overtake(self, threads: usize) -> bool {
        match self {
            Self::Serial | Self::Ordered => false,
            Self::TaskPool { .. } | Self::WorkerPool | Self::OneByOne | Self::Stream => threads > 1,
            // A later config packet may even be applied while a data packet waits in its queue.
            Self::PartialPipeline { .. } => true,
            Self::PhasedPipeline { control } => control > 1,
        }
    }

    /// Why this number of threads does not go with this model.
    #[must_use]
    pub fn refuses(self, threads: usize) -> Option<String> {
        let most = |what: &str, most: usize| {
            (threads > most)
                .then(|| format!("expected at most {most} threads {what}, found {threads}"))
        };
        match self {
            Self::Serial => most("for serial", 1),
            Self::TaskPool { packets: 0 } => Some("expected tasks of at least 1 packet".to_owned()),
            Self::TaskPool { packets } => {
                most(&format!("for tasks of {packets} packets"), IN_FLIGHT / packets)
            }
            Self::PartialPipeline { config: split } | Self::PhasedPipeline { control: split }
                if split == 0 || split >= threads =>
            {
                Some(format!("expected a split that leaves workers on both sides of {threads}"))
            }
            _ => most("with 256 packets in flight", IN_FLIGHT),
        }
        .or_else(|| (threads == 0).then(|| "expected at least 1 thread".to_owned()))
    }
}

/// Runs an engine over a source; `threads` counts workers, not a dispatcher beside them.
///
/// # Errors
/// The model does not go with this number of threads, or one of them panicked.
pub fn run<A: Address>(
    orchestration: Orchestration,
    threads: usize,
    engine: &dyn Engine<A>,
    source: &dyn Source<A>,
    sink: &Sink,
    meter: &Meter,
) -> Result<Outcome, String> {
    if let Some(why) = orchestration.refuses(threads) {
        return Err(why);
    }
    let (in_flight, panicked) = (InFlight::new(IN_FLIGHT), Panicked::default());
    let (in_flight, panicked) = (&in_flight, &panicked);
    let run = Run { engine, source, sink, in_flight, meter, threads, panicked };
    let started = Instant::now();
    match orchestration {
        Orchestration::Serial => run.part(|| worker_pool::worker(&run)),
        Orchestration::TaskPool { packets } => task_pool::run(&run, packets),
        Orchestration::WorkerPool => worker_pool::run(&run),
        Orchestration::OneByOne => worker_pool::one_by_one(&run)?,
        Orchestration::PartialPipeline { config } => partial_pipeline::run(&run, config),
        Orchestration::PhasedPipeline { control } => phased_pipeline::run(&run, control),
        Orchestration::Stream => stream::run(&run)?,
        Orchestration::Ordered => ordered::run(&run),
    }
    run.outcome(started)
}

pub use serial::run_alone;

#[cfg(test)]
mod tests;
