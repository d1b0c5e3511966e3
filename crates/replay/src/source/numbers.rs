//! Frame numbers: from 1 in each capture as recorded, whatever the order in which frames are read.
//!
//! Contract: a number names the capture and the frame in it; that of a single capture is the frame's own.

use std::fmt;

use packet::visible;

/// Bits for the frame; those above are the capture's place among the arguments.
const FRAME_BITS: u32 = 48;

/// The number of a frame of one of the captures, counted from 0.
pub(crate) fn number(capture: usize, frame: u64) -> u64 {
    (capture as u64) << FRAME_BITS | frame
}

/// The capture of a number.
pub(crate) fn capture_of(number: u64) -> usize {
    (number >> FRAME_BITS) as usize
}

/// The number within its capture.
pub(crate) fn frame_of(number: u64) -> u64 {
    number & ((1 << FRAME_BITS) - 1)
}

/// The captures' names, to print numbers with.
#[derive(Debug, Clone, Default)]
pub struct Numbers {
    /// Files as messages name them; empty where there is only one.
    files: Vec<String>,
}

impl Numbers {
    /// Numbers of these captures.
    #[must_use]
    pub fn of(captures: &[String]) -> Self {
        let file = |given: &String| super::CaptureName::parse(given).file;
        let files =
            if captures.len() > 1 { captures.iter().map(file).collect() } else { Vec::new() };
        Self { files }
    }

    /// The number within its capture.
    #[must_use]
    pub fn frame(&self, number: u64) -> u64 {
        frame_of(number)
    }

    /// The capture, where there are several.
    #[must_use]
    pub fn file(&self, number: u64) -> Option<&str> {
        self.files.get(capture_of(number)).map(String::as_str)
    }

    /// A number as it is printed, and typed after `--packet`: `N`, or `FILE:N` where there are several
    /// captures.
    #[must_use]
    pub fn show(&self, number: u64) -> Shown<'_> {
        Shown { file: self.file(number), frame: frame_of(number) }
    }

    /// A number as [`Self::show`] prints it, with characters made visible for a line.
    pub(crate) fn words(&self, number: u64) -> String {
        visible::word(&self.show(number).to_string()).into_owned()
    }

    /// A number for JSON: the number alone, or as it is printed.
    pub(crate) fn json(&self, number: u64) -> serde_json::Value {
        match self.file(number) {
            Some(_) => self.show(number).to_string().into(),
            None => number.into(),
        }
    }

    /// Reads what [`Numbers::show`] prints. The file may be named by its last part, if only one is so.
    #[must_use]
    pub fn parse(&self, text: &str) -> Option<u64> {
        let positive =
            |text: &str| text.parse::<u64>().ok().filter(|frame| *frame == frame_of(*frame));
        let Some((file, frame)) = text.rsplit_once(':') else {
            return positive(text).filter(|_| self.files.is_empty());
        };
        let frame = positive(frame)?;
        let mut ends = (0..).zip(&self.files).filter(|(_, name)| {
            name.strip_suffix(file).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        });
        let exact = self.files.iter().position(|name| name == file);
        let last = ends.next().filter(|_| ends.next().is_none()).map(|(place, _)| place);
        exact.or(last).map(|capture| number(capture, frame))
    }
}

/// A printed number.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'n> {
    file: Option<&'n str>,
    frame: u64,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.file {
            Some(file) => write!(f, "{file}:{}", self.frame),
            None => write!(f, "{}", self.frame),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_one_capture_is_the_frames_own() {
        let numbers = Numbers::of(&["a.pcap".to_owned()]);
        assert_eq!(numbers.show(7).to_string(), "7");
        assert_eq!(numbers.parse("7"), Some(7));
        assert_eq!(numbers.parse("a.pcap:7"), None);
    }

    #[test]
    fn numbers_of_several_name_the_capture() {
        let files = ["one/a.pcap", "two/a.pcap", "lan0=b:1.pcap"];
        let numbers = Numbers::of(&files.map(str::to_owned));
        let of_b = number(2, 12);
        assert_eq!(numbers.show(of_b).to_string(), "b:1.pcap:12");
        assert_eq!(numbers.parse("b:1.pcap:12"), Some(of_b));
        assert_eq!(numbers.parse("two/a.pcap:3"), Some(number(1, 3)));
        for wrong in ["12", "a.pcap:3", "c.pcap:3", "b:1.pcap:x", "1.pcap:12", ":3"] {
            assert_eq!(numbers.parse(wrong), None, "{wrong}");
        }
    }
}
