//! `--annotate`: a pcapng of every packet as it was captured, with verdict and deciding rule as its
//! comment. In Wireshark: `frame.comment contains "drop"`.

use std::io::{self, Write};

use pktio::Interface;
use pktio::pcap_file::NgWriter;

use crate::evaluated::Evaluated;

/// Interfaces of one output file, written where they are first needed.
#[derive(Debug, Default)]
pub(crate) struct Interfaces(Vec<Interface>);

impl Interfaces {
    /// How many there are.
    pub(crate) fn len(&self) -> u32 {
        self.0.len() as u32
    }

    /// The number of a frame's interface in this file.
    pub(crate) fn number<W: Write>(
        &mut self,
        evaluated: &Evaluated<'_>,
        writer: &mut NgWriter<W>,
    ) -> io::Result<u32> {
        let link_type = evaluated.meta.link_type;
        let known = self.0.iter().position(|known| match evaluated.interface {
            Some(interface) => known == interface,
            None => known.link_type == link_type && known.name.is_none(),
        });
        if let Some(known) = known {
            return Ok(known as u32);
        }
        let interface = evaluated
            .interface
            .cloned()
            .unwrap_or_else(|| Interface { link_type, ..Interface::default() });
        let number = writer.add_interface(&interface)?;
        self.0.push(interface);
        Ok(number)
    }
}

/// The annotated capture.
pub(crate) struct Annotation<'w> {
    writer: NgWriter<&'w mut dyn Write>,
    interfaces: Interfaces,
}

impl<'w> Annotation<'w> {
    pub(crate) fn new(to: &'w mut dyn Write) -> io::Result<Self> {
        Ok(Self { writer: NgWriter::new(to)?, interfaces: Interfaces::default() })
    }

    pub(crate) fn write(&mut self, evaluated: &Evaluated<'_>) -> io::Result<()> {
        let number = self.interfaces.number(evaluated, &mut self.writer)?;
        self.writer.write(number, evaluated.as_captured(), Some(&comment(evaluated)))
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        self.writer.finish()?.flush()
    }
}

/// `tamis #12: drop by L31 -A …`, and what the rules of `--vs` make of it if that is another verdict.
fn comment(evaluated: &Evaluated<'_>) -> String {
    let word = evaluated.end.verdict.word();
    let mut comment = format!(
        "tamis #{}: {word} by {}",
        evaluated.numbers.show(evaluated.frame),
        evaluated.place.with_line()
    );
    if let Some((end, place)) = evaluated.new
        && end.verdict.word() != word
    {
        comment += &format!("; new rules: {} by {}", end.verdict.word(), place.with_line());
    }
    comment
}
