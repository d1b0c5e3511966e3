//! The patterns of `-m string`: `--hex-string`'s notation, and the text that prints.
//!
//! Source: iptables-extensions(8), "string".

use std::fmt::Write;

const MAX_BYTES: usize = 128;

/// Refuses a pattern that the kernel refuses.
pub(super) fn checked(pattern: Vec<u8>) -> Result<Vec<u8>, String> {
    match pattern.len() {
        1..=MAX_BYTES => Ok(pattern),
        _ => Err(format!("a string of 1-{MAX_BYTES} bytes")),
    }
}

/// Reads text with bytes in hexadecimal between bars, `GET|20 2f|`; a backslash outside bars keeps the
/// next character. The character after a bar belongs to what the bar opens, so `||` closes nothing.
pub(super) fn parse_hex(text: &str) -> Result<Vec<u8>, String> {
    let (bytes, mut at, mut hex) = (text.as_bytes(), 0, false);
    let mut pattern = Vec::new();
    while let Some(byte) = bytes.get(at) {
        let mut escaped = false;
        match byte {
            b'\\' if hex => return Err("no backslash between bars".to_owned()),
            b'\\' => escaped = true,
            b'|' => {
                hex = !hex;
                at += 1;
                while hex && bytes.get(at) == Some(&b' ') {
                    at += 1;
                }
            }
            _ => {}
        }
        match bytes.get(at + usize::from(escaped)) {
            None if escaped => return Err("a character after the backslash".to_owned()),
            None => break,
            Some(_) if hex => {
                pattern.push(hex_byte(&bytes[at..])?);
                at += if bytes.get(at + 2) == Some(&b' ') { 3 } else { 2 };
            }
            Some(literal) => {
                pattern.push(*literal);
                at += 1 + usize::from(escaped);
            }
        }
    }
    Ok(pattern)
}

/// Two digits, with something after them: a bar has to close them.
fn hex_byte(bytes: &[u8]) -> Result<u8, String> {
    let digit = |at: usize| bytes.get(at).and_then(|byte| (*byte as char).to_digit(16));
    match (digit(0), digit(1), bytes.get(2)) {
        (Some(high), Some(low), Some(_)) => Ok((high << 4 | low) as u8),
        _ => Err("pairs of hexadecimal digits and a closing bar".to_owned()),
    }
}

/// The pattern in quotes, if it prints so: all of it printable, and no backslash at the end.
pub(super) fn plain_text(pattern: &[u8]) -> Option<String> {
    let printable = pattern.iter().all(|byte| matches!(byte, b' '..=b'~'));
    if !printable || pattern.ends_with(b"\\") {
        return None;
    }
    let mut text = String::from("\"");
    for byte in pattern {
        if matches!(byte, b'"' | b'\\') {
            text.push('\\');
        }
        text.push(char::from(*byte));
    }
    text.push('"');
    Some(text)
}

/// The pattern as one hexadecimal block in quotes.
pub(super) fn hex_text(pattern: &[u8]) -> String {
    let mut text = String::from("\"|");
    for byte in pattern {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text.push_str("|\"");
    text
}

/// The kernel's `toupper`: ASCII and Latin-1, where `0xdf` and `0xff` are taken for small letters.
pub(super) fn fold(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' | 0xdf..=0xf6 | 0xf8..=0xff => byte - 32,
        _ => byte,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_strings_read() {
        let read = |text| parse_hex(text).unwrap();
        assert_eq!(read("|0a0D|"), [10, 13]);
        assert_eq!(read("a|0a 0d|b"), b"a\n\rb");
        assert_eq!(read("|  41 42 |"), b"AB");
        assert_eq!(read(r"a\|b\\"), br"a|b\");
        assert_eq!(read("|41||42|"), b"A|42", "a bar opens what follows it");
        assert_eq!(read("a|"), b"a");
    }

    #[test]
    fn broken_hex_strings_are_refused() {
        for wrong in ["|4|", "|41", "|4x|", r"|\41|", r"a\", "||41|"] {
            assert!(parse_hex(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_prints_reads_back() {
        assert_eq!(plain_text(br#"a"b\c d"#).as_deref(), Some(r#""a\"b\\c d""#));
        assert_eq!(plain_text(b"a\\"), None);
        assert_eq!(plain_text(b"a\n"), None);
        assert_eq!(plain_text("é".as_bytes()), None);
        assert_eq!(hex_text(b"a\n"), "\"|610a|\"");
    }
}
