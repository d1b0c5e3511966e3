//! What a replay writes packet by packet, besides its report.

use std::io::{self, Write};

use crate::annotate::Annotation;
use crate::error::Error;
use crate::evaluated::Evaluated;
use crate::lines::Lines;
use crate::packets;
use crate::split::Split;

/// The files of `--packets`, `--split` and `--annotate`, and the lines of `--follow`.
#[derive(Default)]
pub(crate) struct Outputs<'w> {
    pub(crate) packets: Option<&'w mut dyn Write>,
    pub(crate) lines: Option<Lines<'w>>,
    pub(crate) split: Option<Split>,
    pub(crate) annotation: Option<Annotation<'w>>,
}

impl Outputs<'_> {
    pub(crate) fn is_none(&self) -> bool {
        let Self { packets, lines, split, annotation } = self;
        packets.is_none() && lines.is_none() && split.is_none() && annotation.is_none()
    }

    /// Whether packets are wanted as text.
    pub(crate) fn wants_words(&self) -> bool {
        self.packets.is_some() || self.lines.is_some()
    }

    /// Writes a packet wherever it belongs.
    pub(crate) fn write(&mut self, evaluated: &Evaluated<'_>) -> Result<(), Error> {
        if let Some(to) = &mut self.packets {
            packets::write(*to, evaluated).map_err(failed("--packets"))?;
        }
        if let Some(lines) = &mut self.lines {
            lines.write(evaluated).map_err(failed("--follow"))?;
        }
        if let Some(annotation) = &mut self.annotation {
            annotation.write(evaluated).map_err(failed("--annotate"))?;
        }
        match &mut self.split {
            Some(split) => split.write(evaluated),
            None => Ok(()),
        }
    }

    /// Flushes the packets, so that a reader of their text has all of them so far.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        if let Some(to) = &mut self.packets {
            to.flush().map_err(failed("--packets"))?;
        }
        match &mut self.lines {
            Some(lines) => lines.to.flush().map_err(failed("--follow")),
            None => Ok(()),
        }
    }

    /// Ends every file.
    pub(crate) fn finish(self) -> Result<(), Error> {
        if let Some(annotation) = self.annotation {
            annotation.finish().map_err(failed("--annotate"))?;
        }
        if let Some(to) = self.packets {
            to.flush().map_err(failed("--packets"))?;
        }
        self.split.map_or(Ok(()), Split::finish)
    }
}

/// An error of the file that an option names.
pub(crate) fn failed(option: &str) -> impl Fn(io::Error) -> Error {
    move |source| Error::File { file: option.to_owned(), source }
}
