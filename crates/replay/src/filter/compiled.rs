//! [`Filter`]: an expression, compiled for each link type.

use std::collections::HashMap;
use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};

use pktio::pcap_file::{ClassicWriter, Precision};
use pktio::{Frame, LinkType};

use super::program::Program;
use crate::error::Error;

/// A filter expression and its programs.
#[derive(Debug)]
pub struct Filter {
    expression: String,
    /// Given as bytecode.
    bytecode: Option<Program>,
    programs: HashMap<LinkType, Program>,
}

impl Filter {
    /// Reads an expression, or bytecode: the count of instructions and then each as `code jt jf k`, apart
    /// by commas or newlines.
    ///
    /// # Errors
    /// It is bytecode, and some of it is not what was expected there.
    pub fn new(expression: &str) -> Result<Self, Error> {
        let looks_like_bytecode = expression.trim_start().starts_with(|c: char| c.is_ascii_digit())
            && expression.contains([',', '\n']);
        let bytecode = looks_like_bytecode
            .then(|| Program::parse(expression))
            .transpose()
            .map_err(Error::Filter)?;
        Ok(Self { expression: expression.to_owned(), bytecode, programs: HashMap::new() })
    }

    /// The expression, as given.
    #[must_use]
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Whether a frame passes.
    ///
    /// # Errors
    /// tcpdump is absent, or refuses the expression for the link type of the frame.
    pub fn accepts(&mut self, frame: Frame<'_>) -> Result<bool, Error> {
        let link_type = frame.meta.link_type;
        let program = match &self.bytecode {
            Some(program) => program,
            None => {
                if !self.programs.contains_key(&link_type) {
                    let program = compile(&self.expression, link_type)?;
                    self.programs.insert(link_type, program);
                }
                &self.programs[&link_type]
            }
        };
        Ok(program.run(frame.bytes, frame.meta.wire_length) != 0)
    }
}

/// Compiles an expression by running tcpdump.
fn compile(expression: &str, link_type: LinkType) -> Result<Program, Error> {
    let wrong = |what: String| Error::Filter(what);
    let child = Command::new("tcpdump")
        .args(["-r", "-", "-ddd", "--", expression])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|error| match error.kind() {
        ErrorKind::NotFound => wrong(
            "expected tcpdump on the PATH, which compiles filter expressions (or give bytecode as \
             `tcpdump -ddd` prints it)"
                .to_owned(),
        ),
        _ => wrong(format!("tcpdump: {error}")),
    })?;
    if let Some(input) = child.stdin.take() {
        // A tcpdump that has already given up says why on its standard error.
        let _ = ClassicWriter::new(input, link_type, Precision::Micros)
            .and_then(ClassicWriter::finish)
            .and_then(|mut input| input.flush());
    }
    let output = child.wait_with_output().map_err(|error| wrong(format!("tcpdump: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let reason = said.lines().last().unwrap_or("no reason given");
        let reason = reason.strip_prefix("tcpdump: ").unwrap_or(reason);
        return Err(wrong(format!("\"{expression}\" on {link_type}: tcpdump says: {reason}")));
    }
    Program::parse(&String::from_utf8_lossy(&output.stdout)).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pktio::FrameMeta;

    #[test]
    fn bytecode_is_taken_without_tcpdump() {
        let mut filter = Filter::new("2,40 0 0 12,22 0 0 0").unwrap();
        let meta = FrameMeta { wire_length: 14, ..FrameMeta::default() };
        let frame = |bytes| Frame { bytes, meta: &meta };
        assert!(filter.accepts(frame(&[1; 14])).unwrap());
        assert!(!filter.accepts(frame(&[0; 14])).unwrap());
        assert!(Filter::new("2,40 0 0 12").is_err());
    }

    #[test]
    fn an_expression_is_compiled_for_the_link_type() {
        let mut filter = Filter::new("udp").unwrap();
        let mut bytes = [0_u8; 28];
        (bytes[0], bytes[9]) = (0x45, 17);
        let meta = FrameMeta { link_type: LinkType::RAW, wire_length: 28, ..FrameMeta::default() };
        match filter.accepts(Frame { bytes: &bytes, meta: &meta }) {
            Ok(accepts) => assert!(accepts),
            Err(error) => return eprintln!("skipped: {error}"),
        }
        let meta = FrameMeta { link_type: LinkType::ETHERNET, ..meta };
        assert!(!filter.accepts(Frame { bytes: &bytes, meta: &meta }).unwrap());
        let error =
            Filter::new("tcp prt 80").unwrap().accepts(Frame { bytes: &bytes, meta: &meta });
        assert!(error.unwrap_err().to_string().contains("syntax error"));
    }
}
