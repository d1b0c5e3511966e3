//! `nft list ruleset`: its tables and chains, and of rules the words that do something to a packet.
//!
//! A word in the braces of a set is a value, unless it is a verdict after a colon; elsewhere it is a statement.

use super::chain::{ForeignChain, ForeignFamily, ForeignHook, ForeignProgram};
use super::effects::{Effects, of_meta, of_statement};
use super::listing::{Body, Listing};
use crate::text::{TextError, Word};

/// Names of priorities, and what they are for bridges where that differs.
const PRIORITIES: [(&str, i32, i32); 7] = [
    ("raw", -300, -300),
    ("mangle", -150, -150),
    ("dstnat", -100, -300),
    ("filter", 0, -200),
    ("security", 50, 50),
    ("out", 100, 100),
    ("srcnat", 100, 300),
];

/// Words that stand where their kind of statement does in text alone.
const NO_STATEMENTS: [&str; 6] = ["match", "set", "map", "last", "meter", "comment"];

pub(super) fn read(text: &str, listing: &mut Listing) -> Result<(), TextError> {
    let words = words(text);
    let mut rest = Words { all: &words, at: 0 };
    while let Some(word) = rest.next() {
        match word.text {
            "\n" | ";" => {}
            "flush" => rest.line(),
            "table" => table(&mut rest, listing)?,
            _ => return Err(word.not("table, as nft list ruleset prints it")),
        }
    }
    Ok(())
}

/// Words not read yet.
struct Words<'w, 't> {
    all: &'w [Word<'t>],
    at: usize,
}

impl<'w, 't> Words<'w, 't> {
    fn next(&mut self) -> Option<Word<'t>> {
        let word = self.all.get(self.at).copied();
        self.at += 1;
        word
    }

    /// The next word that must be there.
    fn expect(&mut self, expected: &'static str) -> Result<Word<'t>, TextError> {
        let last = self
            .all
            .last()
            .map_or(Word { line: 1, column: 1, text: "" }, |last| Word { text: "", ..*last });
        self.next().ok_or_else(|| last.not(expected))
    }

    /// Skips the rest of the line.
    fn line(&mut self) {
        while self.next().is_some_and(|word| word.text != "\n") {}
    }

    /// The words up to the brace that closes the one before them, without it.
    fn block(&mut self) -> Result<&'w [Word<'t>], TextError> {
        let (from, mut depth) = (self.at, 1);
        loop {
            match self.expect("}")?.text {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Ok(self.all.get(from..self.at - 1).unwrap_or_default());
            }
        }
    }
}

fn table(rest: &mut Words<'_, '_>, listing: &mut Listing) -> Result<(), TextError> {
    let word = rest.expect("a family, or the name of a table")?;
    let (family, name) = match ForeignFamily::named(word.text) {
        Some(family) => (family, rest.expect("the name of a table")?),
        None => (ForeignFamily::Ip, word),
    };
    let table = unquoted(name.text);
    let open = rest.expect("{")?;
    if open.text != "{" {
        return Err(open.not("{"));
    }
    let words = rest.block()?;
    let mut inner = Words { all: words, at: 0 };
    let mut kind = "";
    while let Some(word) = inner.next() {
        match word.text {
            "\n" | ";" => {}
            // One of its flags, which nothing else in it is named without a brace.
            "dormant" => drop(listing.dormant.insert((family, table.into()))),
            "{" => {
                // The word before it is the name of what it begins.
                let name = inner.at.checked_sub(2).and_then(|at| words.get(at));
                let name = name.map_or("", |name| unquoted(name.text));
                let block = inner.block()?;
                match kind {
                    "chain" => chain((family, table, name), block, listing)?,
                    "map" => {
                        let body = listing.map(family, table, name);
                        statement(block, 1, body);
                    }
                    _ => {}
                }
            }
            "chain" | "map" | "set" | "flowtable" | "counter" | "quota" | "limit" | "ct"
            | "synproxy" | "secmark" | "tunnel" => {
                kind = word.text;
                // A name may read like a kind.
                inner.at += usize::from(inner.all.get(inner.at).is_some_and(|w| w.text != "{"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn chain(
    (family, table, name): (ForeignFamily, &str, &str),
    block: &[Word<'_>],
    listing: &mut Listing,
) -> Result<(), TextError> {
    listing.chain(family, table, name);
    let mut depth = 0;
    let ends = |word: &Word<'_>| {
        match word.text {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        depth == 0 && matches!(word.text, "\n" | ";")
    };
    for words in block.split(ends).filter(|words| !words.is_empty()) {
        let is = |place: usize, text: &str| words.get(place).is_some_and(|word| word.text == text);
        if is(0, "type") && is(2, "hook") {
            let expected = "type KIND hook HOOK priority PRIORITY, as nft list ruleset prints it";
            let base = base((family, table, name), words).ok_or_else(|| words[0].not(expected))?;
            listing.bases.push(base);
        } else if is(0, "policy") {
            if is(1, "drop") {
                listing.chain(family, table, name).effects.add(Effects::DROPS);
            }
        } else if !is(0, "comment") {
            statement(words, 0, listing.chain(family, table, name));
        }
    }
    Ok(())
}

/// `type filter hook ingress device "eth0" priority filter - 5`.
fn base(
    (family, table, name): (ForeignFamily, &str, &str),
    words: &[Word<'_>],
) -> Option<ForeignChain> {
    let texts: Vec<&str> = words.iter().map(|word| word.text).collect();
    let at = texts.iter().position(|text| *text == "priority")?;
    let devices = texts.get(4..at).unwrap_or_default().iter();
    let devices =
        devices.filter(|text| !matches!(**text, "device" | "devices" | "=" | "{" | "}" | ","));
    Some(ForeignChain {
        program: ForeignProgram::Nft,
        family,
        table: table.into(),
        name: name.into(),
        hook: ForeignHook::named(texts.get(3)?)?,
        priority: priority(family, texts.get(at + 1..)?)?,
        is_nat: texts.get(1) == Some(&"nat"),
        reroutes: texts.get(1) == Some(&"route"),
        devices: devices.map(|device| unquoted(device).into()).collect(),
        effects: Effects::default(),
    })
}

/// `-5`, `filter`, `filter - 5`.
fn priority(family: ForeignFamily, texts: &[&str]) -> Option<i32> {
    let (first, more) = texts.split_first()?;
    let named = PRIORITIES.iter().find(|(name, ..)| name == first);
    let base = match named {
        Some((.., of_bridge)) if family == ForeignFamily::Bridge => *of_bridge,
        Some((_, usual, _)) => *usual,
        None => first.parse().ok()?,
    };
    let more: String = more.concat();
    let more: i32 = if more.is_empty() { 0 } else { more.trim_start_matches('+').parse().ok()? };
    base.checked_add(more)
}

/// What a rule, or the braces of a map at depth 1, does.
fn statement(words: &[Word<'_>], mut depth: u32, body: &mut Body) {
    let mut before = ["", "", ""];
    for (place, word) in words.iter().enumerate() {
        let text = word.text;
        let is_value = matches!(before, ["type", ..] | ["!=", "type", _] | ["tcp", "with", _]);
        let is_verdict = depth == 0 && !is_value || before[0] == ":";
        let next = || words.get(place + 1).map_or("", |next| next.text);
        match text {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            "ct" if depth == 0 => body.effects.add(Effects::TRACKS),
            // A chain without a name, in braces, or what an old nft has no words for.
            "jump" | "goto" if is_verdict && next() == "{" => body.effects.add(Effects::ALL),
            "#" => body.effects.add(Effects::ALL),
            "jump" | "goto" if is_verdict => body.chains.push(unquoted(next()).into()),
            // The name of a chain.
            _ if matches!(before[0], "jump" | "goto") => {}
            "set" if depth == 0 => body.effects.add(of_set(before, next())),
            "vmap" if depth == 0 => {
                if let Some(map) = next().strip_prefix('@') {
                    body.maps.push(map.into());
                }
            }
            _ if is_verdict && !NO_STATEMENTS.contains(&text) => {
                body.effects.add(of_statement(text).unwrap_or_default());
            }
            _ => {}
        }
        before = [text, before[0], before[1]];
    }
}

/// What `… set VALUE` does, by the words before it, the last one first.
fn of_set(before: [&str; 3], next: &str) -> Effects {
    match before {
        // Rules add to sets so, in old listings.
        _ if matches!(next, "add" | "update" | "delete") => Effects::default(),
        ["mark", ..] => Effects::MARKS,
        [key, of @ ("meta" | "ct"), _] => of_meta(of, key),
        [_, _, "option"] => Effects::OPTIONS,
        _ => Effects::ALL,
    }
}

fn unquoted(text: &str) -> &str {
    text.trim_matches('"')
}

/// The words of a text, with braces, commas, colons between blanks, semicolons and ends of lines as words of their own. A
/// comment after a statement is the word `#`, unless it only gives a handle.
fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let (mut begins, mut quoted) = (None, false);
        let mut take = |from: usize, to: usize| {
            words.push(Word { line: number, column: from as u32 + 1, text: &line[from..to] });
        };
        for (at, c) in line.char_indices() {
            let is_sign = matches!(c, '{' | '}' | ';' | ',');
            let is_comment = c == '#' && begins.is_none();
            if !quoted && (c.is_whitespace() || is_sign || is_comment) {
                if let Some(from) = begins.take() {
                    take(from, at);
                }
                if is_comment {
                    let is_statement = !line[..at].trim().is_empty();
                    if is_statement && !line[at + 1..].trim_start().starts_with("handle ") {
                        take(at, at + 1);
                    }
                    break;
                }
                if is_sign {
                    take(at, at + 1);
                }
                continue;
            }
            quoted ^= c == '"';
            begins.get_or_insert(at);
        }
        if let Some(from) = begins {
            take(from, line.len());
        }
        words.push(Word { line: number, column: line.len() as u32 + 1, text: "\n" });
    }
    words
}
