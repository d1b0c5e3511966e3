//! A capture as the command line names it: `FILE`, or `IFACE=FILE` for a capture of one interface that does not say so.

use std::path::Path;

/// A capture to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureName {
    /// The argument as given.
    pub given: String,
    /// The interface that it was recorded on, where that is given.
    pub interface: Option<String>,
    /// Name of the file; `-` for standard input.
    pub file: String,
}

impl CaptureName {
    /// Reads an argument. A file that is there under the whole name is that file.
    #[must_use]
    pub fn parse(given: &str) -> Self {
        let (interface, file) = match given.split_once('=') {
            Some((interface, file)) if is_interface(interface) && !Path::new(given).exists() => {
                (Some(interface.to_owned()), file)
            }
            _ => (None, given),
        };
        Self { given: given.to_owned(), interface, file: file.to_owned() }
    }
}

/// What the kernel takes as a name: up to 15 bytes, no slash, no blank.
fn is_interface(name: &str) -> bool {
    let odd = |c: char| c == '/' || c.is_whitespace();
    !name.is_empty() && name.len() < 16 && !name.contains(odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(given: &str) -> (Option<String>, String) {
        let CaptureName { interface, file, .. } = CaptureName::parse(given);
        (interface, file)
    }

    #[test]
    fn an_interface_stands_before_the_first_sign() {
        let named = |interface: &str, file: &str| (Some(interface.to_owned()), file.to_owned());
        assert_eq!(parts("lan0=a.pcap"), named("lan0", "a.pcap"));
        assert_eq!(parts("lan0=x=y.pcap"), named("lan0", "x=y.pcap"));
        assert_eq!(parts("wan0=-"), named("wan0", "-"));
        for file in ["a.pcap", "dir/a=b.pcap", "=a.pcap", "a name that is far too long=b", "-"] {
            assert_eq!(parts(file), (None, file.to_owned()));
        }
    }

    #[test]
    fn a_file_of_the_whole_name_wins() {
        let dir = std::env::temp_dir().join(format!("tamis-argument-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        // A path has a slash, so that only the name itself can be tried in place.
        let file = dir.join("lan0=a.pcap");
        std::fs::write(&file, "").unwrap();
        let given = file.to_str().unwrap();
        assert_eq!(parts(given), (None, given.to_owned()));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
