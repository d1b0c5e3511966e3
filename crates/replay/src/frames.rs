//! The stream of captures for whoever looks at its frames one by one.

use std::ops::ControlFlow;

use dataplane::{Arrival, Config};
use host::sighting::Sighting;
use pktio::LinkType;

use crate::error::Error;
use crate::lane::arrival;
use crate::rules_file::RulesFile;
use crate::run::link_of;
use crate::select::Selection;
use crate::source::{Batch, Source, seen_at};
use crate::spotter::Spotter;

/// A frame of the stream.
pub(crate) struct Frame<'a> {
    /// Its number: see [`crate::Numbers`].
    pub(crate) number: u64,
    /// Its captured bytes.
    pub(crate) bytes: &'a mut [u8],
    /// How its capture says they are to be read.
    pub(crate) link_type: LinkType,
    /// What it is.
    pub(crate) sighting: Sighting,
    /// How it arrived; `None` if tamis cannot read its link type.
    pub(crate) arrival: Option<Arrival<'a>>,
}

/// What is left to say when a stream has ended.
pub(crate) struct Ended<B> {
    /// What the frame gave that broke the stream off.
    pub(crate) broke: Option<B>,
    /// How many frames each capture had.
    pub(crate) frames: Vec<u64>,
    /// What was odd about the captures.
    pub(crate) warnings: Vec<String>,
}

/// Shows every frame in turn, until one breaks the stream off.
///
/// # Errors
/// A capture cannot be opened or read.
pub(crate) fn each<B>(
    captures: &[String],
    (files, config): (&[RulesFile], &Config),
    mut see: impl FnMut(Frame<'_>) -> ControlFlow<B>,
) -> Result<Ended<B>, Error> {
    let mut source = Source::new(captures, None, 0, Some(Spotter::new(files, config)));
    let mut batch = Batch::default();
    let mut broke = None;
    while broke.is_none() && source.next(&mut batch, &mut Selection::default(), &mut None)? {
        let Batch { burst, arrived, seen, stream, .. } = &mut batch;
        for ((frame, arrived), at) in burst.iter_mut().zip(&*arrived).zip(0..) {
            let (link_type, number) = (frame.meta.link_type, arrived.number);
            let seen = seen_at(seen, at);
            let sighting = seen.sighting;
            let arrival = link_of(link_type).map(|link| {
                let arrival = arrival((frame.meta, link), (*arrived, seen), stream);
                Arrival { was_let_go: arrival.was_let_go && config.pair, ..arrival }
            });
            let shown = see(Frame { number, bytes: frame.bytes, link_type, sighting, arrival });
            if let ControlFlow::Break(with) = shown {
                broke = Some(with);
                break;
            }
        }
    }
    Ok(Ended {
        broke,
        frames: source.read.packets_of_each(),
        warnings: source.read.into_warnings(),
    })
}
