//! `tamis ctl capture`.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::process::ExitCode;

use anyhow::{Context, Result};
use live::answers::{self, WatchEnd, WatchLine};
use live::{Request, WatchRequest, follow};
use packet::visible::{self, plural};
use pktio::pcap_file::NgWriter;
use pktio::{Direction, Frame, FrameMeta, Interface, LinkType, Timestamp};
use replay::shell;
use serde_json::json;

use super::control::{SocketArgs, nobody, refused};
use crate::screen;

/// `tamis ctl capture`.
#[derive(Debug, clap::Args)]
pub(crate) struct CaptureArgs {
    /// The file to write
    #[arg(value_name = "FILE")]
    pub file: String,
    /// Which frames, in the words of tamis watch
    #[arg(value_name = "FILTER")]
    pub filter: Vec<String>,
    /// Why they were dropped: drop for every reason, or a reason or verdict as tamis watch has them
    #[arg(long, default_value = "drop", value_name = "REASON")]
    pub reason: String,
    /// How many
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub count: u64,
}

/// A capture file that grows frame by frame, with an interface for each port.
struct Written {
    writer: NgWriter<File>,
    interfaces: Vec<(String, LinkType)>,
    frames: u64,
    lost: u64,
}

impl CaptureArgs {
    fn request(&self) -> Request {
        let reason = match &*self.reason {
            "drop" => String::new(),
            verdict @ ("accept" | "reject" | "unknown" | "any") => format!("verdict {verdict} "),
            reason => format!("reason {reason} "),
        };
        let filter = reason + &self.filter.join(" ");
        Request::Watch(WatchRequest { filter, count: Some(self.count), frames: true })
    }

    pub(super) fn run(&self, args: &SocketArgs) -> Result<ExitCode> {
        let mut written = None;
        let named = || self.file.clone();
        let told = follow(&args.socket, &self.request(), |document| {
            let written = match &mut written {
                Some(written) => written,
                none => none.insert(Written::create(&self.file)?),
            };
            written.add(answers::read(document)?)
        });
        let told = match &written {
            // Nobody is there, unless a file was begun.
            None => told.map_err(|error| nobody(&args.socket, error))?,
            Some(_) => told.with_context(named)?,
        };
        if let Err(refusal) = told {
            return Ok(refused(&refusal));
        }
        let (frames, lost) = written.map_or((0, 0), |written| (written.frames, written.lost));
        if args.json {
            let document = json!({ "file": self.file, "frames": frames, "lost": lost });
            screen::json(&document)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut text = format!("{}: {}", visible::word(&self.file), plural(frames, "frame"));
        if lost > 0 {
            text += &format!(" ({lost} more were not told)");
        }
        text.push('\n');
        if frames > 0 {
            let why = shell::command("why", &["DIR", &self.file], " --packet 1");
            text += &format!("next: tamis ctl snapshot DIR && {why}\n");
        }
        screen::print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Written {
    fn create(file: &str) -> io::Result<Self> {
        let writer = NgWriter::new(File::create(file)?)?;
        Ok(Self { writer, interfaces: Vec::new(), frames: 0, lost: 0 })
    }

    /// A line of the stream: a frame, or its end.
    fn add(&mut self, line: WatchLine) -> io::Result<ControlFlow<()>> {
        let frame = match line {
            WatchLine::End(WatchEnd { lost, .. }) => {
                self.lost = lost;
                return Ok(ControlFlow::Break(()));
            }
            WatchLine::Frame(frame) => frame,
        };
        self.lost = frame.lost.unwrap_or(self.lost);
        let link_type = LinkType(frame.link_type.unwrap_or_default());
        let bytes = frame.frame.as_deref().and_then(bytes);
        let bytes = bytes.ok_or_else(|| io::Error::other("a frame that is none"))?;
        let meta = FrameMeta {
            timestamp: Timestamp::parse_rfc3339(&frame.time),
            wire_length: frame.length,
            link_type,
            direction: Direction::Inbound,
            ..FrameMeta::default()
        };
        let interface = self.interface(&frame.input, link_type)?;
        let comment = format!("tamis: {}", frame.decided());
        self.writer.write(interface, Frame { bytes: &bytes, meta: &meta }, Some(&comment))?;
        // After Ctrl-C the file has what came until then.
        self.writer.flush()?;
        self.frames += 1;
        Ok(ControlFlow::Continue(()))
    }

    /// The number of a port's interface.
    fn interface(&mut self, port: &str, link_type: LinkType) -> io::Result<u32> {
        let is_it = |(name, link): &(String, LinkType)| name == port && *link == link_type;
        if let Some(at) = self.interfaces.iter().position(is_it) {
            return Ok(at as u32);
        }
        self.interfaces.push((port.to_owned(), link_type));
        let name = Some(port.to_owned());
        self.writer.add_interface(&Interface { name, link_type, ..Interface::default() })
    }
}

/// Bytes, of two hexadecimal digits each.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let digit = |c: &u8| char::from(*c).to_digit(16);
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some((digit(high)? * 16 + digit(low)?) as u8),
        _ => None,
    };
    digits.as_bytes().chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_are_pairs_of_digits() {
        assert_eq!(super::bytes("00ff1a"), Some(vec![0, 255, 26]));
        assert_eq!(super::bytes(""), Some(vec![]));
        assert_eq!([super::bytes("0"), super::bytes("0g")], [None, None]);
    }
}
