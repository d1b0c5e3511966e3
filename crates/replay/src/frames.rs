//! Captures as one stream of frames, for whoever looks at them one by one.
//!
//! Contract: constant memory; several captures are one stream in argument order, its frames counted from
//! 1; time never runs backwards (a frame with an earlier time takes the latest time).

use std::ops::ControlFlow;

use dataplane::Arrival;
use pktio::{Burst, CaptureReader, FrameMeta, LinkType, Port};

use crate::error::Error;
use crate::run::link_of;

/// A frame of the stream.
pub(crate) struct Frame<'a> {
    /// Its number in the stream, from 1.
    pub(crate) number: u64,
    /// Its captured bytes.
    pub(crate) bytes: &'a mut [u8],
    /// How its capture says they are to be read.
    pub(crate) link_type: LinkType,
    /// How it arrived; `None` if tamis cannot read its link type.
    pub(crate) arrival: Option<Arrival<'a>>,
}

/// What is left to say when a stream has ended.
pub(crate) struct Ended<B> {
    /// What the frame gave that broke the stream off.
    pub(crate) broke: Option<B>,
    /// How many frames were seen.
    pub(crate) frames: u64,
    /// What was odd about the captures.
    pub(crate) warnings: Vec<String>,
}

/// Shows every frame in turn, until one breaks the stream off.
///
/// # Errors
/// A capture cannot be opened or read.
pub(crate) fn each<B>(
    captures: &[String],
    mut see: impl FnMut(Frame<'_>) -> ControlFlow<B>,
) -> Result<Ended<B>, Error> {
    let mut burst = Burst::new();
    let mut number = 0;
    let mut warnings = Vec::new();
    let mut now = None;
    for capture in captures {
        let mut reader = CaptureReader::open(capture)?;
        while reader.rx_burst(&mut burst)? > 0 {
            for frame in burst.iter_mut() {
                number += 1;
                let index = frame.meta.interface as usize;
                let interface = reader.interfaces().get(index).and_then(|i| i.name.as_deref());
                let arrival = arrival(number, (frame.meta, interface), &mut now);
                let link_type = frame.meta.link_type;
                let shown = see(Frame { number, bytes: frame.bytes, link_type, arrival });
                if let ControlFlow::Break(with) = shown {
                    return Ok(Ended { broke: Some(with), frames: number, warnings });
                }
            }
        }
        warnings.extend(reader.warning());
    }
    Ok(Ended { broke: None, frames: number, warnings })
}

fn arrival<'a>(
    number: u64,
    (meta, interface): (&FrameMeta, Option<&'a str>),
    now: &mut Option<u64>,
) -> Option<Arrival<'a>> {
    let time = meta.timestamp.and_then(|time| u64::try_from(time.as_nanos()).ok());
    let time = time.map(|time| now.map_or(time, |now| time.max(now)));
    *now = time.or(*now);
    Some(Arrival {
        time,
        direction: meta.direction,
        interface,
        ..Arrival::new(number, link_of(meta.link_type)?, meta.wire_length as usize)
    })
}
