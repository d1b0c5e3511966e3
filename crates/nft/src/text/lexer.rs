//! Words and signs of nft's text, through included files and variables.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use crate::family::Position;
use crate::types;

/// Most files and variables within each other.
const DEPTH: usize = 16;
/// Most bytes that variables may come to altogether.
const EXPANDED: usize = 64 << 20;

/// What is wrong with a text, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// File.
    pub file: String,
    /// Place in it.
    pub at: Position,
    /// What is wrong, what was expected.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.at.line, self.at.column, self.message)
    }
}

impl std::error::Error for Error {}

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    Quoted,
    Sign,
    Newline,
    End,
}

/// A text that is read.
pub(super) struct Source {
    pub(super) name: String,
    pub(super) text: Rc<str>,
}

/// Where reading goes on in a source.
#[derive(Debug, Clone, Copy)]
struct Frame {
    source: usize,
    at: usize,
    end: usize,
    line: u32,
    line_start: usize,
    variable: bool,
}

/// The value of a variable: a part of a source.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    frame: Frame,
}

pub(super) struct Lexer {
    pub(super) sources: Vec<Source>,
    frames: Vec<Frame>,
    pub(super) variables: BTreeMap<String, Part>,
    expanded: usize,
    /// The current token.
    pub(super) kind: Kind,
    pub(super) word: String,
    pub(super) at: Position,
    start: usize,
    /// The handle that a comment gave since it was taken.
    pub(super) handle: Option<u64>,
    /// The number of elements that a comment gave.
    pub(super) count: Option<u64>,
    /// An extension of iptables that older releases list as a comment.
    pub(super) hidden: Option<String>,
    /// What stopped reading.
    pub(super) error: Option<Error>,
}

fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/' | b'-')
}

/// Returns the length of an address or class with colons at the start of a text.
fn with_colons(text: &[u8]) -> usize {
    let text = &text[..text.len().min(65)];
    let end = |b: &u8| !b.is_ascii_hexdigit() && !matches!(b, b':' | b'.');
    let len = text.iter().position(end).unwrap_or(text.len());
    let Ok(run) = std::str::from_utf8(&text[..len]) else { return 0 };
    if len > 64 || !run.contains(':') {
        return 0;
    }
    let six = |run: &str| run.parse::<std::net::Ipv6Addr>().is_ok();
    // An address with the colon of a map right after it.
    let shorter = || run.rfind(':').filter(|end| six(&run[..*end])).unwrap_or(0);
    if text.get(len).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_') {
        return shorter();
    }
    let class = |run: &str| {
        let parts = run.split_once(':');
        parts.is_some_and(|(a, b)| !a.is_empty() && !b.is_empty() && a.len() < 5 && b.len() < 5)
            && types::classid(run).is_some()
    };
    if six(run) || types::ether(run).is_some() || class(run) { len } else { shorter() }
}

impl Lexer {
    pub(super) fn new(name: &str, text: &str) -> Self {
        let mut lexer = Self {
            sources: Vec::new(),
            frames: Vec::new(),
            variables: BTreeMap::new(),
            expanded: 0,
            kind: Kind::Newline,
            word: String::new(),
            at: Position::default(),
            start: 0,
            handle: None,
            count: None,
            hidden: None,
            error: None,
        };
        lexer.enter(name, text);
        lexer
    }

    /// Goes on in another file; says whether there is room for it.
    pub(super) fn enter(&mut self, name: &str, text: &str) -> bool {
        if self.frames.len() >= DEPTH || self.sources.len() >= usize::from(u16::MAX) {
            return false;
        }
        let source = self.sources.len();
        self.sources.push(Source { name: name.to_owned(), text: text.into() });
        let end = text.len();
        self.frames.push(Frame { source, at: 0, end, line: 1, line_start: 0, variable: false });
        true
    }

    pub(super) fn fail(&mut self, message: &str) {
        if self.error.is_none() {
            self.error = Some(self.error_at(self.at, message));
        }
        self.kind = Kind::End;
        self.word.clear();
        self.frames.clear();
    }

    /// Makes an error at a place, or what stopped reading before.
    pub(super) fn error_at(&self, at: Position, message: &str) -> Error {
        if let Some(error) = &self.error {
            return error.clone();
        }
        let file = self.sources.get(usize::from(at.file)).map_or("", |source| &source.name);
        let at = Position { line: at.line.max(1), column: at.column.max(1), ..at };
        Error { file: file.to_owned(), at, message: message.to_owned() }
    }

    /// Goes to the next token.
    pub(super) fn next(&mut self) {
        loop {
            let Some(frame) = self.frames.last().copied() else {
                self.kind = Kind::End;
                self.word.clear();
                return;
            };
            let text = self.sources[frame.source].text.clone();
            let bytes = &text.as_bytes()[..frame.end];
            let at = self.skip(bytes, frame.at);
            self.place(frame.source, at);
            let Some(first) = bytes.get(at).copied() else {
                self.frames.pop();
                if frame.variable || self.frames.is_empty() {
                    continue;
                }
                self.token(Kind::Newline, "");
                return;
            };
            if first == b'$' {
                if self.expand(bytes, at) {
                    continue;
                }
                return;
            }
            self.lex(&text[..frame.end], at, first);
            return;
        }
    }

    fn place(&mut self, source: usize, at: usize) {
        if let Some(frame) = self.frames.last_mut() {
            frame.at = at;
            let column = u32::try_from(at - frame.line_start).unwrap_or(u32::MAX).saturating_add(1);
            self.at = Position { line: frame.line, column, file: source as u16 };
            self.start = at;
        }
    }

    /// Passes spaces, comments and continued lines.
    fn skip(&mut self, bytes: &[u8], from: usize) -> usize {
        let mut at = from;
        loop {
            match bytes.get(at) {
                Some(b' ' | b'\t' | b'\r') => at += 1,
                Some(b'\\') if bytes.get(at + 1) == Some(&b'\n') => {
                    at += 2;
                    self.line(at);
                }
                Some(b'#') => {
                    let end = memchr(bytes, at);
                    self.comment(&bytes[at + 1..end]);
                    at = end;
                }
                _ => return at,
            }
        }
    }

    fn comment(&mut self, comment: &[u8]) {
        let Ok(text) = std::str::from_utf8(comment) else { return };
        let text = text.trim();
        if let Some(handle) = text.strip_prefix("handle ") {
            self.handle = handle.trim().parse().ok();
        } else if let Some(count) = text.strip_prefix("count ") {
            self.count = count.trim().parse().ok();
        } else if ["xt_", "match ", "target "].iter().any(|start| text.starts_with(start)) {
            self.hidden = Some(text.to_owned());
        }
    }

    fn line(&mut self, start: usize) {
        if let Some(frame) = self.frames.last_mut() {
            frame.line += 1;
            frame.line_start = start;
        }
    }

    fn token(&mut self, kind: Kind, word: &str) {
        self.kind = kind;
        self.word.clear();
        self.word.push_str(word);
    }

    fn go(&mut self, at: usize) {
        if let Some(frame) = self.frames.last_mut() {
            frame.at = at;
        }
    }

    fn lex(&mut self, text: &str, at: usize, first: u8) {
        let bytes = text.as_bytes();
        let rest = &bytes[at..];
        let (kind, len) = match first {
            b'\n' => {
                self.line(at + 1);
                (Kind::Newline, 1)
            }
            b'"' => {
                let Some(len) = rest[1..]
                    .iter()
                    .position(|b| matches!(b, b'"' | b'\n'))
                    .filter(|len| rest[len + 1] == b'"')
                else {
                    self.fail("expected a closing quote");
                    return;
                };
                self.token(Kind::Quoted, &text[at + 1..=at + len]);
                self.go(at + len + 2);
                return;
            }
            b'@' => (
                Kind::Word,
                1 + rest[1..].iter().position(|b| !in_word(*b)).unwrap_or(rest.len() - 1),
            ),
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' | b':' if with_colons(rest) > 0 => {
                (Kind::Word, with_colons(rest))
            }
            b'0'..=b'9' => {
                let end = |b: &u8| !b.is_ascii_alphanumeric() && !matches!(b, b'_' | b'.');
                (Kind::Word, rest.iter().position(end).unwrap_or(rest.len()))
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let len = rest.iter().position(|b| !in_word(*b)).unwrap_or(rest.len());
                (Kind::Word, len + usize::from(rest.get(len) == Some(&b'*')))
            }
            _ => {
                let two =
                    matches!(rest.get(..2), Some(b"!=" | b"==" | b"<=" | b">=" | b"<<" | b">>"));
                let len = if two { 2 } else { text[at..].chars().next().map_or(1, char::len_utf8) };
                (Kind::Sign, len)
            }
        };
        self.token(kind, &text[at..at + len]);
        self.go(at + len);
    }

    /// Goes on within the value of a variable.
    fn expand(&mut self, bytes: &[u8], at: usize) -> bool {
        let len = bytes[at + 1..]
            .iter()
            .position(|b| !in_word(*b) || matches!(b, b'/' | b'-'))
            .unwrap_or(bytes.len() - at - 1);
        let name = String::from_utf8_lossy(&bytes[at + 1..=at + len]).into_owned();
        let Some(part) = self.variables.get(&name).copied() else {
            self.fail(&format!("no variable ${name} is defined"));
            return false;
        };
        self.expanded += part.frame.end - part.frame.at + 16;
        if self.frames.len() >= DEPTH || self.expanded > EXPANDED {
            self.fail(&format!("variables are nested too deeply or come to too much at ${name}"));
            return false;
        }
        self.go(at + 1 + len);
        self.frames.push(part.frame);
        true
    }

    /// Takes what follows, to the end of the line or a `;` outside braces, as the value of a variable.
    pub(super) fn value(&mut self) -> Option<Part> {
        let frame = *self.frames.last()?;
        let text = self.sources[frame.source].text.clone();
        let bytes = &text.as_bytes()[..frame.end];
        let (mut at, mut depth) = (frame.at, 0u32);
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'{' => depth += 1,
                b'}' => depth = depth.saturating_sub(1),
                b'"' => {
                    at +=
                        bytes[at + 1..].iter().position(|b| matches!(b, b'"' | b'\n')).unwrap_or(0)
                            + 1
                }
                b'#' => at = memchr(bytes, at) - 1,
                b'\\' if bytes.get(at + 1) == Some(&b'\n') => {
                    at += 1;
                    self.line(at + 1);
                }
                b'\n' | b';' if depth == 0 => break,
                b'\n' => self.line(at + 1),
                _ => {}
            }
            at += 1;
        }
        self.go(at.min(frame.end));
        Some(Part { frame: Frame { end: at.min(frame.end), variable: true, ..frame } })
    }

    /// Cuts the current word, which has not been left yet, after `len` bytes.
    pub(super) fn cut(&mut self, len: usize) {
        self.word.truncate(len);
        self.go(self.start + len);
    }
}

fn memchr(bytes: &[u8], from: usize) -> usize {
    bytes[from..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |len| from + len)
}
