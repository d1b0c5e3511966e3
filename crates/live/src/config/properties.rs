//! The `.properties` files of the study's framework, as configurations of `tamis run`.
//!
//! Contract: each key of the study has its place, or the file is refused; unknown keys are named, all of them. Ports
//! have the numbers that DPDK gives them, and are wired in pairs; a last port without a partner is wired to a loopback,
//! so that its frames return through it, and are evaluated a second time on the way. Rules are not in such a file.
//!
//! | key | becomes |
//! |---|---|
//! | `rxburst`, `txburst`, `freeburst` | `rx`, `tx`, `free` of `[burst]` |
//! | `numcores` | `cores` of `[workers]`, from 0, where there are several |
//! | `numports`, a mask | a port and its wire for each bit |
//! | `memorychannels`, `memory`, `programid`, `blacklist` | `-n`, `-m`, `--file-prefix`, `--block` of the EAL |
//! | `programname` | a comment: it informs who reads |
//!
//! Writing to a `String` cannot fail, so its result is not checked.
//!
//! Source: the study's section 1.8; `java.util.Properties.load` for the form.

use std::fmt::{self, Write};

use packet::visible;

/// The study's keys.
const KEYS: [&str; 10] = [
    "rxburst",
    "txburst",
    "freeburst",
    "numcores",
    "numports",
    "memorychannels",
    "programid",
    "programname",
    "memory",
    "blacklist",
];

/// The most frames of a burst, processors, memory channels, and MiB of memory.
const MOST_FRAMES: u64 = 512;
const MOST_CORES: u64 = 128;
const MOST_CHANNELS: u64 = 32;
const MOST_MEMORY: u64 = 1 << 20;

/// A key and its value, and their first line, from 1.
#[derive(Debug, PartialEq, Eq)]
struct Property {
    line: usize,
    key: String,
    value: String,
}

/// An error in a file of properties: its name, the line where there is one, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PropertiesError(String);

impl fmt::Display for PropertiesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PropertiesError {}

type Result<T> = std::result::Result<T, PropertiesError>;

/// The configuration that a file of properties stands for.
///
/// # Errors
/// A key is not one of the study's, or its value is wrong.
pub fn to_toml(file: &str, text: &str) -> Result<String> {
    let file = visible::word(file);
    let properties = Properties { file: &file, all: properties(text) };
    properties.refuse_unknown()?;
    let mut toml = format!("# From {file}");
    if let Some(name) = properties.get("programname") {
        let _ = write!(toml, ", of {}", visible::word(&name.value));
    }
    toml.push('\n');
    properties.ports(&mut toml)?;
    toml.push_str("[rules]\nip = \"rules.v4\"\n");
    properties.workers(&mut toml)?;
    properties.burst(&mut toml)?;
    properties.eal(&mut toml)?;
    Ok(toml)
}

struct Properties<'f> {
    file: &'f str,
    all: Vec<Property>,
}

impl Properties<'_> {
    /// The last property of that key, as Java takes it.
    fn get(&self, key: &str) -> Option<&Property> {
        self.all.iter().rfind(|property| property.key == key)
    }

    fn refuse_unknown(&self) -> Result<()> {
        let unknown = self.all.iter().filter(|property| !KEYS.contains(&&*property.key));
        let unknown: Vec<String> = unknown
            .map(|property| {
                format!("\"{}\" (line {})", visible::word(&property.key), property.line)
            })
            .collect();
        if !unknown.is_empty() {
            let (keys, unknown) = (KEYS.join(" "), unknown.join(", "));
            let what = format!("{}: expected keys {keys}, found {unknown}", self.file);
            return Err(PropertiesError(what));
        }
        Ok(())
    }

    fn wrong(&self, property: &Property, expected: &str) -> PropertiesError {
        let Property { line, key, value } = property;
        let found = visible::word(value);
        let what = format!("{}:{line}: {key}: expected {expected}, found \"{found}\"", self.file);
        PropertiesError(what)
    }

    /// A whole number from 1 to `most`.
    fn number(&self, key: &str, most: u64) -> Result<Option<u64>> {
        let Some(property) = self.get(key) else { return Ok(None) };
        let number = property.value.parse().ok().filter(|number| (1..=most).contains(number));
        let wrong = || self.wrong(property, &format!("a whole number from 1 to {most}"));
        number.map(Some).ok_or_else(wrong)
    }

    /// The numbers of the ports.
    fn mask(&self) -> Result<Vec<u32>> {
        let Some(property) = self.get("numports") else {
            let what = format!("{}: expected numports, a mask of ports such as 0x3", self.file);
            return Err(PropertiesError(what));
        };
        let value = &property.value;
        let parsed = match value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")) {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => value.parse(),
        };
        match parsed {
            Ok(mask) if mask != 0 => {
                Ok((0..u32::BITS).filter(|bit| mask >> bit & 1 == 1).collect())
            }
            _ => Err(self.wrong(property, "a mask of ports such as 0x3")),
        }
    }

    fn ports(&self, toml: &mut String) -> Result<()> {
        let ports = self.mask()?;
        for port in &ports {
            let device = format_args!("kind = \"dpdk\"\ndevice = \"{port}\"");
            let _ = write!(toml, "[[port]]\nname = \"port{port}\"\n{device}\n");
        }
        let pairs = ports.chunks_exact(2);
        if let [port] = pairs.remainder() {
            toml.push_str("[[port]]\nname = \"back\"\nkind = \"loopback\"\n");
            let _ = write!(toml, "[[wire]]\nports = [\"port{port}\", \"back\"]\n");
        }
        for pair in pairs {
            let _ = write!(toml, "[[wire]]\nports = [\"port{}\", \"port{}\"]\n", pair[0], pair[1]);
        }
        Ok(())
    }

    /// Writes the workers; a single worker needs no entry.
    fn workers(&self, toml: &mut String) -> Result<()> {
        if let Some(count @ 2..) = self.number("numcores", MOST_CORES)? {
            let cores: Vec<u64> = (0..count).collect();
            let _ = write!(toml, "[workers]\ncores = {cores:?}\n");
        }
        Ok(())
    }

    fn burst(&self, toml: &mut String) -> Result<()> {
        let mut lines = String::new();
        for (key, name) in [("rxburst", "rx"), ("txburst", "tx"), ("freeburst", "free")] {
            if let Some(frames) = self.number(key, MOST_FRAMES)? {
                let _ = writeln!(lines, "{name} = {frames}");
            }
        }
        if !lines.is_empty() {
            let _ = write!(toml, "[burst]\n{lines}");
        }
        Ok(())
    }

    fn eal(&self, toml: &mut String) -> Result<()> {
        let mut arguments = Vec::new();
        let numbers = [("memorychannels", "-n", MOST_CHANNELS), ("memory", "-m", MOST_MEMORY)];
        for (key, option, most) in numbers {
            if let Some(number) = self.number(key, most)? {
                arguments.extend([option.to_owned(), number.to_string()]);
            }
        }
        if let Some(property) = self.get("programid") {
            let is_good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if property.value.is_empty() || !property.value.chars().all(is_good) {
                return Err(self.wrong(property, "letters, digits, - and _"));
            }
            arguments.extend(["--file-prefix".to_owned(), property.value.clone()]);
        }
        if let Some(property) = self.get("blacklist") {
            let listed = property.value.split(',').map(str::trim);
            for device in listed.filter(|device| !device.is_empty()) {
                let is_good = |c: char| c.is_ascii_hexdigit() || c == ':' || c == '.';
                if !device.chars().all(is_good) {
                    return Err(self.wrong(property, "PCI addresses such as 00:09.0"));
                }
                arguments.extend(["--block".to_owned(), device.to_owned()]);
            }
        }
        let _ = write!(toml, "[dpdk]\neal = {arguments:?}\n");
        Ok(())
    }
}

/// The properties of a text, as `java.util.Properties` reads them.
fn properties(text: &str) -> Vec<Property> {
    let mut lines = text.lines().enumerate();
    let mut all = Vec::new();
    while let Some((at, line)) = lines.next() {
        let mut line = line.trim_start().to_owned();
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        // An odd number of backslashes at its end: it goes on in the next line.
        while line.len() % 2 != line.trim_end_matches('\\').len() % 2 {
            line.pop();
            let Some((_, next)) = lines.next() else { break };
            line.push_str(next.trim_start());
        }
        let end = end_of_key(&line);
        let (key, rest) = line.split_at(end);
        let rest = rest.trim_start();
        let value = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim();
        all.push(Property { line: at + 1, key: unescaped(key), value: unescaped(value) });
    }
    all
}

/// Where the key of a line ends: at the first blank, `=` or `:` that no backslash stands before.
fn end_of_key(line: &str) -> usize {
    let mut is_escaped = false;
    let end = line.char_indices().find(|(_, c)| {
        let ends = !is_escaped && (matches!(c, '=' | ':') || c.is_whitespace());
        is_escaped = *c == '\\' && !is_escaped;
        ends
    });
    end.map_or(line.len(), |(at, _)| at)
}

/// A backslash makes the character after it an ordinary one.
fn unescaped(text: &str) -> String {
    let mut chars = text.chars();
    let mut plain = String::with_capacity(text.len());
    while let Some(c) = chars.next() {
        plain.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, Settings};

    use super::*;

    /// The file of the study's own code.
    const STUDY: &str = "rxburst=512\ntxburst=16\nfreeburst=16\nnumcores=1\nnumports=0x1\n\
        memorychannels=3\nprogramid=fw\nprogramname=firewall\nmemory=256\n\
        blacklist=00:09.0,00:0a.0\n";

    fn settings(text: &str) -> Settings {
        Settings::from_text("live.toml", &to_toml("fw.properties", text).unwrap()).unwrap()
    }

    #[test]
    fn the_studys_file_runs_as_it_is() {
        let settings = settings(STUDY);
        let burst = settings.burst;
        assert_eq!((burst.rx, burst.tx, burst.free), (512, 16, 16));
        let eal = "-n 3 -m 256 --file-prefix fw --block 00:09.0 --block 00:0a.0";
        assert_eq!(settings.eal.join(" "), eal);
        assert_eq!(settings.ports[0].kind, Kind::Dpdk { device: "0".to_owned() });
        assert_eq!(settings.ports[1].kind, Kind::Loopback);
        assert_eq!(settings.wires[0].ports, [0, 1]);
        let toml = to_toml("fw.properties", STUDY).unwrap();
        assert!(toml.starts_with("# From fw.properties, of firewall\n"), "{toml}");
    }

    #[test]
    fn each_bit_of_the_mask_is_a_port_and_pairs_are_wires() {
        let settings = settings("numports = 0x1d");
        let devices: Vec<&str> = settings.ports.iter().map(|port| &*port.name).collect();
        assert_eq!(devices, ["port0", "port2", "port3", "port4"]);
        let wires: Vec<[usize; 2]> = settings.wires.iter().map(|wire| wire.ports).collect();
        assert_eq!(wires, [[0, 1], [2, 3]]);
    }

    #[test]
    fn several_cores_are_workers() {
        let toml = to_toml("a", "numports=3\nnumcores=3").unwrap();
        assert!(toml.contains("[workers]\ncores = [0, 1, 2]\n"), "{toml}");
    }

    #[test]
    fn what_is_not_the_studys_or_no_value_is_named() {
        let cases = [
            ("rxburst=1\nlinks=2\n\nspeed 3", "\"links\" (line 2), \"speed\" (line 4)"),
            ("rxburst=1", "a: expected numports, a mask of ports such as 0x3"),
            ("numports=0", "a:1: numports: expected a mask of ports such as 0x3, found \"0\""),
            (
                "numports=1\nrxburst=0",
                "a:2: rxburst: expected a whole number from 1 to 512, found \"0\"",
            ),
            ("numports=1\nmemory=all", "a:2: memory: expected a whole number"),
            ("numports=1\nprogramid=a b", "a:2: programid: expected letters, digits, - and _"),
            ("numports=1\nblacklist=\"x", "a:2: blacklist: expected PCI addresses"),
        ];
        for (text, expected) in cases {
            let error = to_toml("a", text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn lines_are_read_as_java_reads_them() {
        let text = "! no\n  # no\na=1\nb : 2\nc 3\n\nd\\:e = 4\\\n   5\\\\\nf\na=6\n";
        let read = |line, key: &str, value: &str| Property {
            line,
            key: key.to_owned(),
            value: value.to_owned(),
        };
        let expected = [
            read(3, "a", "1"),
            read(4, "b", "2"),
            read(5, "c", "3"),
            read(7, "d:e", "45\\"),
            read(9, "f", ""),
            read(10, "a", "6"),
        ];
        assert_eq!(properties(text), expected);
        let again = Properties { file: "a", all: properties(text) };
        assert_eq!(again.get("a").unwrap().value, "6");
    }
}
